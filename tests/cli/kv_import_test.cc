#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/kv_program.h"

namespace kvstore::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class KvImport : public KvProgram {
 protected:
  void SetUp() override { Ok({"dataset", "create", "events", "--max-versions", "0"}); }

  static std::string Line(int i) {
    return Json{{"row", "r" + std::to_string(i)},
                {"items", {{{"column", "x"}, {"value", "v"}, {"timestamp", i}}}}}
               .dump() +
           "\n";
  }
  size_t Rows() const {
    std::stringstream lines(Ok({"scan", "events", "--all", "--json"}));
    size_t rows = 0;
    for (std::string line; std::getline(lines, line);) rows += Json::parse(line).contains("row") ? 1 : 0;
    return rows;
  }
  static Json ReadLine(const std::string& path, int number = 0) {
    std::ifstream file(path);
    std::string line;
    for (int i = 0; i <= number; ++i) std::getline(file, line);
    return line.empty() ? Json() : Json::parse(line);
  }
};

TEST_F(KvImport, LoadsLinesAndRejectsBadOnes) {
  const std::string file =
      File("in.jsonl", Line(1) + "not json\n" + Line(2) + "\n" + R"({"row":"","items":[]})" + "\n" +
                           R"({"row":"x","items":[{"column":"a","value":"b"}],"more":1})" + "\n" + "\xFF\n" +
                           Line(3).substr(0, Line(3).size() - 1));
  const Json answer = Json::parse(Ok({"import", "events", file, "--json"}));
  EXPECT_EQ(answer["lines"], 8);
  EXPECT_EQ(answer["imported"], 3);
  EXPECT_EQ(answer["rejected"], 4);
  EXPECT_EQ(Rows(), 3u);
  const Json first = ReadLine(file + ".rejects");
  EXPECT_EQ(first["line"], 2);
  EXPECT_EQ(first["text"], "not json");
  EXPECT_EQ(ReadLine(file + ".rejects", 1)["line"], 5);
  EXPECT_EQ(ReadLine(file + ".rejects", 2)["error"], "more: unknown field");
  EXPECT_EQ(ReadLine(file + ".rejects", 3)["text"]["b64"], "/w==");
  EXPECT_FALSE(fs::exists(file + ".progress"));
}

TEST_F(KvImport, ReadsStandardInputAndReportsForPeople) {
  const std::string out = Ok({"import", "events"}, Line(1) + Line(2));
  EXPECT_NE(out.find("2 lines: 2 imported, 0 rejected"), std::string::npos) << out;
  EXPECT_EQ(Rows(), 2u);
}

TEST_F(KvImport, GoesOnWhereItWasStopped) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += Line(i);
  const std::string file = File("in.jsonl", text);
  // As a process that was killed after 30 lines leaves it.
  size_t offset = 0;
  for (int i = 0; i < 30; ++i) offset += Line(i).size();
  File("in.jsonl.progress", Json{{"dataset", "events"},
                                 {"file_bytes", text.size()},
                                 {"offset", offset},
                                 {"lines", 30},
                                 {"imported", 30},
                                 {"rejected", 0}}
                                .dump());
  const Json answer = Json::parse(Ok({"import", "events", file, "--json"}));
  EXPECT_EQ(answer["lines"], 50);
  EXPECT_EQ(answer["imported"], 50);
  EXPECT_EQ(Rows(), 20u);
  EXPECT_FALSE(fs::exists(file + ".progress"));
}

TEST_F(KvImport, KilledInTheMiddleAndGivenAgainItLoadsEverything) {
  std::string text;
  constexpr int kLines = 60'000;
  for (int i = 0; i < kLines; ++i) text += Line(i);
  const std::string file = File("in.jsonl", text);
  const pid_t child = Fork([&] {
    ::execl(KV_PROGRAM, KV_PROGRAM, "--data", (dir_ / "store").c_str(), "import", "events", file.c_str(),
            nullptr);
    return 127;
  });
  while (!fs::exists(file + ".progress") && fs::exists(file)) {
    if (::waitpid(child, nullptr, WNOHANG) != 0) break;
  }
  Kill(child);
  const Json answer = Json::parse(Ok({"import", "events", file, "--json"}));
  EXPECT_EQ(answer["imported"], kLines);
  EXPECT_EQ(Rows(), size_t{kLines});
}

TEST_F(KvImport, RefusesToGoOnWithAnotherFileOrDataset) {
  const std::string file = File("in.jsonl", Line(1) + Line(2));
  for (const char* progress :
       {R"({"dataset":"events","file_bytes":5,"offset":1,"lines":1,"imported":1,"rejected":0})",
        R"({"dataset":"other","file_bytes":140,"offset":1,"lines":1,"imported":1,"rejected":0})", "garbage",
        ""}) {
    File("in.jsonl.progress", progress);
    Fails({"import", "events", file}, "start over with --restart");
  }
  Ok({"import", "events", file, "--restart"});
  EXPECT_EQ(Rows(), 2u);
}

TEST_F(KvImport, LoadsObjectsAndMappings) {
  Ok({"dataset", "create", "pins", "--shape", "objects", "--type", "7"});
  Ok({"dataset", "create", "boards", "--shape", "mappings"});
  const Json objects =
      Json::parse(Ok({"import", "pins", "--json"}, "{\"data\":{\"a\":1},\"shard\":5}\n{\"data\":[]}\n"));
  EXPECT_EQ(objects["imported"], 1);
  EXPECT_EQ(objects["rejected"], 1);
  EXPECT_NE(Ok({"object", "get", "pins", "352324757225473"}).find("\"a\""), std::string::npos);
  const Json mappings =
      Json::parse(Ok({"import", "boards", "--json"}, "{\"from\":1,\"to\":2,\"sequence\":3}\n{\"from\":1}\n"));
  EXPECT_EQ(mappings["imported"], 1);
  EXPECT_EQ(mappings["rejected"], 1);
}

TEST_F(KvImport, MissingFilesAndDatasetsAreErrors) {
  Fails({"import", "events", (dir_ / "none").string()}, "cannot open");
  Fails({"import", "none", File("in.jsonl", "")}, "there is none named 'none'");
}

}  // namespace
}  // namespace kvstore::testing
