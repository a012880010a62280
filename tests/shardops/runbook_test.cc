#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/shardops/pair.h"
#include "tests/support/processes.h"
#include "tests/support/status_matchers.h"

/// Follows the pages of docs/runbook.md about records that cannot be read: causes the state, and does what
/// the page says, with the commands as they stand there.
namespace kvstore::testing {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

/// A page of the runbook, whose commands have placeholders.
class Page {
 public:
  using Names = std::vector<std::pair<std::string, std::string>>;

  /// names  what stands in the page, and what is meant here.
  Page(const std::string& title, Names names) : names_(std::move(names)) {
    std::ifstream in(std::string(KV_SOURCE_DIR) + "/docs/runbook.md");
    const std::string all{std::istreambuf_iterator<char>(in), {}};
    const size_t begin = all.find("\n## " + title + "\n");
    EXPECT_NE(begin, std::string::npos) << title;
    text_ = all.substr(begin, all.find("\n## ", begin + 1) - begin);
  }

  /// Returns a command of the page, as words, with the names of here.
  std::vector<std::string> Command(const std::string& command) const {
    EXPECT_THAT(text_, HasSubstr(command)) << "is not on the page";
    std::istringstream words(Fill(command));
    return {std::istream_iterator<std::string>(words), {}};
  }
  /// Returns what stands between two texts of the page, with the names of here.
  std::string Between(const std::string& before, const std::string& after) const {
    const size_t begin = text_.find(before);
    EXPECT_NE(begin, std::string::npos) << before << " is not on the page";
    if (begin == std::string::npos) return "";
    const size_t from = begin + before.size();
    return Fill(text_.substr(from, text_.find(after, from) - from));
  }

 private:
  std::string Fill(std::string text) const {
    for (const auto& [there, here] : names_) {
      for (size_t at = 0; (at = text.find(there, at)) != std::string::npos; at += here.size()) {
        text.replace(at, there.size(), here);
      }
    }
    return text;
  }

  const Names names_;
  std::string text_;
};

class RunbookTest : public ::testing::Test {
 protected:
  RunbookTest() {
    const Json mysql = {{"type", "mysql"},
                        {"user", "root"},
                        {"password", ""},
                        {"operator", {{"user", "root"}, {"password", ""}}},
                        {"replication", {{"user", "repl"}, {"password", "repl"}}}};
    const Json config = {{"data", "data"},
                         {"zookeeper", {{"servers", first_.zookeeper().address()}}},
                         {"default_backend", "mysql"},
                         {"backends", {{"mysql", mysql}, {"rocksdb", {{"type", "rocksdb"}}}}}};
    std::ofstream(dir_ / "kv.json") << config;
  }

  /// Runs a command of a page, or the words after "kv".
  Output Kv(std::vector<std::string> words) const {
    if (!words.empty() && words.front() == "kv") words.erase(words.begin());
    words.insert(words.begin(), {KV_PROGRAM, "--config", (dir_ / "kv.json").string()});
    return RunProgram(words);
  }
  std::string Ok(const std::vector<std::string>& words) const {
    const Output output = Kv(words);
    EXPECT_EQ(output.code, 0) << ::testing::PrintToString(words) << ": " << output.err;
    return output.out;
  }
  void Fails(const std::vector<std::string>& words, const std::string& text) const {
    const Output output = Kv(words);
    EXPECT_EQ(output.code, 1) << ::testing::PrintToString(words) << ": " << output.out;
    EXPECT_THAT(output.err, HasSubstr(text));
  }
  std::string Node(const std::string& path) {
    const auto node = first_.fleet().zookeeper.Get(path, /*watch=*/false);
    EXPECT_OK(node) << path;
    return node.ok() ? node->data : "";
  }
  void SetNode(const std::string& path, const std::string& text) {
    EXPECT_OK(first_.fleet().zookeeper.Set(path, text, -1));
  }

  PairFleet first_;
  const TempDir dir_;
};

TEST_F(RunbookTest, TheRecordOfAMigrationCannotBeRead) {
  const Page page("The record of a migration cannot be read", {{"DATASET", "events"}});
  for (const char* const dataset : {"events", "other"}) {
    Ok({"dataset", "create", dataset, "--backend", "rocksdb"});
    Ok({"put", dataset, "r", "c=v"});
    Ok({"migrate", "create", dataset, "--to", "mysql", "--freeze-ms", "10000"});
    Ok({"migrate", "start", dataset});
  }
  const std::string path = page.Between("the node `", "`");
  const std::string whole = Node(path);
  std::string damaged = whole;
  const size_t phase = damaged.find("\"ready\"");
  ASSERT_NE(phase, std::string::npos) << whole;
  damaged.replace(phase, 7, "\"raedy\"");
  SetNode(path, damaged);
  // The alarm.
  const Output list = Kv(page.Command("kv migrate list"));
  EXPECT_EQ(list.code, 1);
  EXPECT_THAT(list.err, HasSubstr("DATA_LOSS"));
  EXPECT_THAT(list.err, HasSubstr("events"));
  EXPECT_THAT(list.out, HasSubstr("unreadable"));
  EXPECT_THAT(list.out, HasSubstr("phase: has a value that this version does not know")) << "names the field";
  EXPECT_THAT(list.out, HasSubstr("other")) << "is not affected";
  EXPECT_THAT(Ok({"get", "events", "r"}), HasSubstr("v")) << "serves as before";
  Fails({"dataset", "drop", "events", "--yes"}, "migrat");
  Fails(page.Command("kv migrate status DATASET"), "the migration's record: phase");
  // The record with the named field corrected.
  SetNode(path, whole);
  EXPECT_THAT(Ok(page.Command("kv migrate status DATASET")), HasSubstr("ready"));
  EXPECT_THAT(Ok(page.Command("kv migrate resume DATASET")), HasSubstr("ready"));
  Ok(page.Command("kv migrate list"));
  Ok({"migrate", "cutover", "events"});
  EXPECT_THAT(Ok({"get", "events", "r"}), HasSubstr("v"));
}

// move_repair_test damages the record of a move that is under way.
TEST_F(RunbookTest, TheRecordOfAMoveCannotBeReadThoughNoneIsUnderWay) {
  const Page page("The record of a move cannot be read", {});
  Ok({"dataset", "create", "events"});
  const std::string path = page.Between("zkCli.sh get ", "`");
  EXPECT_OK(first_.fleet().zookeeper.Create(path, "{"));
  Fails(page.Command("kv shards move status"), path);
  EXPECT_THAT(Ok(page.Command("kv --json shards operations")), Not(HasSubstr("move shards")));
  Ok(page.Command("kv shards check"));
  EXPECT_OK(first_.fleet().zookeeper.Delete(page.Between("zkCli.sh delete ", "`")));
  Ok(page.Command("kv shards move status"));
}

}  // namespace
}  // namespace kvstore::testing
