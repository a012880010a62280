#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/kv_program.h"

/// kv repair on a store whose log has a hole, or lacks its end.
namespace kvstore::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A store whose log has rows in a known order, and the objects of one shard after them.
class KvRepair : public KvProgram {
 protected:
  static constexpr int kRows = 2000;

  void SetUp() override {
    std::vector<std::string> requests = {R"({"op":"create_dataset","dataset":"events"})",
                                         R"({"op":"create_dataset","dataset":"pins","shape":"objects"})"};
    const std::string value(200, 'v');
    for (int i = 0; i < kRows; ++i) {
      requests.push_back(Json{{"op", "put_row"},
                              {"dataset", "events"},
                              {"row", "row" + std::to_string(10'000 + i)},
                              {"items", {{{"column", "x"}, {"value", value}, {"timestamp", 1}}}}}
                             .dump());
    }
    requests.insert(requests.end(), 3, kCreate);
    last_id_ = Exec(requests);
    ASSERT_GT(last_id_, 0u);
  }

  /// Returns the ID in the last answer.
  uint64_t Exec(const std::vector<std::string>& requests) const {
    std::string input;
    for (const std::string& request : requests) input += request + "\n";
    std::stringstream answers(Ok({"exec"}, input));
    std::string last;
    for (std::string line; std::getline(answers, line);) last = line;
    return std::strtoull(Json::parse(last).value("object_id", "0").c_str(), nullptr, 10);
  }

  fs::path Log() const {
    for (const auto& file : fs::directory_iterator(dir_ / "store" / "rocksdb")) {
      if (file.path().extension() == ".log" && file.file_size() > 0) return file.path();
    }
    return {};
  }

  /// Checks that the rows that exist are the first ones, without a gap.
  int RowsFromTheFirst() const {
    std::stringstream lines(Ok({"scan", "events", "--all", "--json"}));
    int rows = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.find("row" + std::to_string(10'000 + rows)) == std::string::npos) break;
      ++rows;
    }
    return rows;
  }

  static constexpr char kCreate[] = R"({"op":"create_object","dataset":"pins","data":{},"shard":7})";
  uint64_t last_id_ = 0;
};

TEST_F(KvRepair, AStoreThatOpensIsLeftAlone) {
  for (const auto& arguments : {std::vector<std::string>{"repair"}, {"repair", "--yes"}}) {
    EXPECT_THAT(Ok(arguments),
                ::testing::StartsWith("the store opens as it is: no log is damaged; tables (.sst)"));
  }
  EXPECT_FALSE(fs::exists(dir_ / "store" / "left-out"));
  EXPECT_EQ(RowsFromTheFirst(), kRows);
}

TEST_F(KvRepair, AHoleInALogEndsIt) {
  const fs::path log = Log();
  const auto size = fs::file_size(log);
  {
    std::fstream file(log, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(size / 2 / 4096 * 4096));
    file << std::string(4096, '\0');
  }
  // The state after a crash: there is no seal.
  fs::remove(dir_ / "store" / "SEAL.logs");
  Fails({"get", "events", "row10000"}, "kv repair");
  Fails({"repair"}, "say --yes");
  EXPECT_EQ(fs::file_size(log), size);
  const std::string done = Ok({"repair", "--yes"});
  EXPECT_NE(done.find(log.string() + " can be read up to byte"), std::string::npos) << done;
  EXPECT_NE(done.find("by its file's time the last log was written to at 20"), std::string::npos) << done;
  // The damaged log is kept as it was.
  int kept = 0;
  for (const auto& file : fs::recursive_directory_iterator(dir_ / "store" / "left-out")) {
    if (!file.is_regular_file()) continue;
    EXPECT_EQ(file.file_size(), size);
    ++kept;
  }
  EXPECT_EQ(kept, 1);
  const int rows = RowsFromTheFirst();
  EXPECT_GT(rows, kRows / 3);
  EXPECT_LT(rows, kRows * 2 / 3);
  EXPECT_EQ(Ok({"get", "events", "row11999"}), "(none)\n");
  // The objects are gone, and their IDs are not given again, neither by this process nor after a restart.
  for (int life = 0; life < 2; ++life) {
    const uint64_t id = Exec({kCreate});
    EXPECT_GT(id, last_id_);
    last_id_ = id;
  }
  EXPECT_FALSE(fs::exists(dir_ / "store" / "LEFT-OUT"));
}

TEST_F(KvRepair, ALogThatLostItsEndOrIsGoneIsDoneWithout) {
  const fs::path log = Log();
  const auto size = fs::file_size(log);
  fs::copy(dir_ / "store", dir_ / "good", fs::copy_options::recursive);
  for (const auto left : {size * 6 / 10, uintmax_t{0}}) {
    fs::remove_all(dir_ / "store");
    fs::copy(dir_ / "good", dir_ / "store", fs::copy_options::recursive);
    if (left > 0) {
      fs::resize_file(log, left);
    } else {
      fs::remove(log);
    }
    Fails({"get", "events", "row10000"}, "is damaged");
    const Output json = Kv({"repair", "--yes", "--json"});
    if (left == 0) {
      const Json left_out = Json::parse(json.out)["left_out"];
      EXPECT_EQ(left_out["log_missing"], true);
      EXPECT_EQ(left_out["gone_bytes"], size);
      EXPECT_EQ(left_out["folder"], "");
      EXPECT_FALSE(fs::exists(dir_ / "store" / "left-out")) << "there is nothing to keep";
      // The datasets themselves are in the manifest, so only their content is gone.
      EXPECT_EQ(json.code, 0) << json.err;
      EXPECT_EQ(RowsFromTheFirst(), 0);
    } else {
      const Json left_out = Json::parse(json.out)["left_out"];
      EXPECT_GE(left_out["left_out_bytes"], size - left);
      EXPECT_LE(left_out["kept_bytes"], left);
      EXPECT_GT(RowsFromTheFirst(), kRows / 2);
    }
    EXPECT_GT(Exec({kCreate}), last_id_);
  }
}

TEST_F(KvRepair, OfALogThatIsGoneItSaysWhatIsKnown) {
  const fs::path log = Log();
  const auto size = fs::file_size(log);
  fs::remove(log);
  const std::string gone = log.string() + " is missing; " + std::to_string(size) +
                           " bytes of logs are gone, and how many changes they held is not known";
  Fails({"repair"}, gone + "; say --yes");
  EXPECT_EQ(Ok({"repair", "--yes"}), gone + "\nthe store opens\n");
}

/// The tables of a store, which has one dataset that was compacted.
std::vector<fs::path> Tables(const fs::path& store) {
  std::vector<fs::path> tables;
  for (const auto& file : fs::directory_iterator(store / "rocksdb")) {
    if (file.path().extension() == ".sst") tables.push_back(file.path());
  }
  return tables;
}

void Overwrite(const fs::path& file, uintmax_t at, size_t bytes) {
  std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(static_cast<std::streamoff>(at));
  out << std::string(bytes, 'X');
}

TEST_F(KvRepair, DamageElsewhereIsNotRepaired) {
  Ok({"compact", "events"});
  for (const fs::path& table : Tables(dir_ / "store")) fs::remove(table);
  Fails({"repair", "--yes"}, ".sst");
  EXPECT_FALSE(fs::exists(dir_ / "store" / "left-out"));
}

TEST_F(KvRepair, ATableThatCannotBeOpenedIsNamedAndOnlyABackupHelps) {
  Ok({"compact", "events"});
  const std::vector<fs::path> tables = Tables(dir_ / "store");
  ASSERT_FALSE(tables.empty());
  // RocksDB itself names another file for damage in the footer.
  Overwrite(tables[0], fs::file_size(tables[0]) - 40, 40);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"get", "events", "row10000"}, {"repair", "--yes"}}) {
    const Output output = Kv(arguments);
    EXPECT_EQ(output.code, 1);
    EXPECT_THAT(output.err, ::testing::HasSubstr("damaged tables: " + tables[0].string()));
    EXPECT_THAT(output.err, ::testing::HasSubstr("restore the store from a backup; kv repair mends logs"));
  }
}

TEST_F(KvRepair, ATableWhoseRowsAreDamagedHurtsItsDatasetOnly) {
  Ok({"dataset", "create", "other"});
  Ok({"put", "other", "r", "x=1"});
  Ok({"compact", "events"});
  const std::vector<fs::path> tables = Tables(dir_ / "store");
  const auto largest = *std::max_element(
      tables.begin(), tables.end(),
      [](const fs::path& a, const fs::path& b) { return fs::file_size(a) < fs::file_size(b); });
  Overwrite(largest, 100, 40);
  const Output output = Kv({"get", "events", "row10000"});
  EXPECT_EQ(output.code, 1);
  EXPECT_THAT(output.err, ::testing::HasSubstr(largest.string()));
  EXPECT_THAT(output.err, ::testing::HasSubstr("restore the store from a backup; kv repair mends logs"));
  Ok({"get", "other", "r"});
  Ok({"dataset", "drop", "events", "--yes"});
  Ok({"get", "other", "r"});
  EXPECT_FALSE(fs::exists(largest));
}

}  // namespace
}  // namespace kvstore::testing
