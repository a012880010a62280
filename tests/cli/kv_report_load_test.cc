#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/kv_program.h"

/// kv report load.
namespace kvstore::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class KvReportLoad : public KvProgram {
 protected:
  void SetUp() override {
    Ok({"report", "create", "site", "--key", "country", "--key", "app=none", "--metric", "clicks", "--metric",
        "users:distinct", "--metric", "delay:distribution", "--salts", "2"});
  }
  /// One value of all points of 1970.
  Json Value(const std::string& metric, const std::string& function) const {
    const Json answer = Json::parse(Ok({"report", "query", "site", metric, "--function", function, "--from",
                                        "0", "--to", "1971-01-01", "--json"}));
    const Json& points = answer["series"][0]["points"];
    return points.empty() ? Json() : points[0][1];
  }
  Json Load(std::vector<std::string> arguments, const std::string& input = "") const {
    arguments.insert(arguments.begin(), {"report", "load", "site"});
    arguments.emplace_back("--json");
    return Json::parse(Ok(arguments, input));
  }
  static std::vector<Json> Lines(const std::string& path) {
    std::ifstream file(path);
    std::vector<Json> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
    return lines;
  }
};

constexpr char kThreePoints[] = "time,country,clicks\n0,US,1\n1000,US,2\n2000,CA,4\n";

TEST_F(KvReportLoad, CsvAndJsonLines) {
  const std::string csv =
      File("a.csv", "time,country,clicks,users,delay\n0,US,1,ann;bob,4;8\n1000,CA,2,bob,\n");
  const Json loaded = Load({csv});
  EXPECT_EQ(loaded["lines"], 2);
  EXPECT_EQ(loaded["points"], 5);
  EXPECT_EQ(loaded["rejected"], 0);
  const std::string lines = File("b.jsonl",
                                 R"({"metric":"clicks","time":2000,"segments":{"country":"US"},"value":10}
{"time":3000,"country":"US","users":["ann","carol"],"delay":[6]})");
  EXPECT_EQ(Load({lines})["points"], 3);
  EXPECT_EQ(Value("clicks", "sum"), 13);
  EXPECT_EQ(Value("clicks", "count"), 3);
  EXPECT_NEAR(Value("users", "distinct").get<double>(), 3, 0.1);
  EXPECT_EQ(Value("delay", "count"), 3);
  EXPECT_EQ(Value("delay", "max"), 8);
}

TEST_F(KvReportLoad, TellsPeopleWhatWasDone) {
  const std::string file = File("a.csv", std::string(kThreePoints) + "\n3000,US,x\n");
  const std::string out = Ok({"report", "load", "site", file});
  EXPECT_TRUE(out.starts_with("5 lines: 3 points, 1 rejected, 1 blank, in ")) << out;
  EXPECT_NE(out.find("rejected lines are in " + file + ".rejects\n"), std::string::npos) << out;
}

TEST_F(KvReportLoad, RejectedLinesAreKeptWithTheirReasons) {
  const std::string file =
      File("a.csv", "time,country,clicks\r\n0,US,1\r\n0,\"US,2\r\n1000,US\r\n2000,US,4\r\n");
  const Json loaded = Load({file});
  EXPECT_EQ(loaded["points"], 2);
  EXPECT_EQ(loaded["rejected"], 2);
  const auto rejected = Lines(file + ".rejects");
  ASSERT_EQ(rejected.size(), 2u);
  EXPECT_EQ(rejected[0], Json::parse(R"({"line":3,"error":"a quote is not closed","text":"0,\"US,2"})"));
  EXPECT_EQ(rejected[1]["line"], 4);
  EXPECT_EQ(rejected[1]["error"], "has 2 fields, and the heading has 3");

  const std::string elsewhere = (dir_ / "elsewhere").string();
  Load({file, "--rejects", elsewhere});
  EXPECT_EQ(Lines(elsewhere).size(), 2u);
}

TEST_F(KvReportLoad, TheRejectFileIsOfTheLastLoad) {
  const std::string bad = "time,country,clicks\n0,US,x\n1000,US,2\n";
  const std::string file = File("a.csv", bad);
  const std::string rejects = file + ".rejects";
  for (int i = 0; i < 2; ++i) {
    Load({file});
    EXPECT_EQ(Lines(rejects).size(), 1u);
  }
  EXPECT_EQ(fs::status(rejects).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  File("a.csv", kThreePoints);
  Load({file});
  EXPECT_FALSE(fs::exists(rejects)) << "nothing was rejected";

  File("a.csv", bad);
  Load({file});
  File("a.csv", "time,country,shoes\n0,US,1\n");
  Fails({"report", "load", "site", file}, "no metric 'shoes'");
  EXPECT_FALSE(fs::exists(rejects)) << "its line is none of the load that failed";
}

TEST_F(KvReportLoad, RejectedLinesAreWrittenThroughNoLinkAndOverNoInput) {
  const std::string file = File("a.csv", "time,country,clicks\n0,US,x\n");
  const std::string victim = File("victim", "as it was\n");
  fs::create_symlink(victim, file + ".rejects");
  Fails({"report", "load", "site", file}, "is a symbolic link, which is not followed");
  std::string text;
  std::getline(std::ifstream(victim), text);
  EXPECT_EQ(text, "as it was");
  EXPECT_TRUE(fs::is_symlink(file + ".rejects"));
  Fails({"report", "load", "site", file, "--reject-file", file}, "is a file that is loaded");
  EXPECT_TRUE(fs::exists(file));
  // A reject file that is no regular file is left as it is.
  EXPECT_EQ(Load({file, "--reject-file", "/dev/null"})["rejected"], 1);
}

TEST_F(KvReportLoad, RejectsOfStandardInputAreTold) {
  std::string text = "time,country,clicks\n";
  for (int i = 0; i < 7; ++i) text += "0,US,x\n";
  const Output output = Kv({"report", "load", "site", "--format", "csv"}, text);
  EXPECT_EQ(output.code, 0);
  EXPECT_TRUE(output.out.starts_with("7 lines: 0 points, 7 rejected, in ")) << output.out;
  EXPECT_TRUE(output.err.starts_with("line 2: clicks: 'x' is not a number")) << output.err;
  EXPECT_NE(output.err.find("and 2 more\n"), std::string::npos) << output.err;
  EXPECT_EQ(Load({"-", "--format", "csv"}, text)["first_rejected"].size(), 5u);
}

TEST_F(KvReportLoad, AFileThatIsLoadedAgainCountsOnce) {
  const std::string file = File("a.csv", kThreePoints);
  for (int i = 0; i < 3; ++i) Load({file});
  EXPECT_EQ(Value("clicks", "sum"), 7);
  EXPECT_EQ(Value("clicks", "count"), 3);
}

TEST_F(KvReportLoad, OfAPointThatComesTwiceTheLaterCounts) {
  std::string text = "time,country,clicks\n";
  for (int i = 1; i <= 100; ++i) text += "0,US," + std::to_string(i) + "\n";
  Load({File("a.csv", text), "--batch-points", "7"});
  EXPECT_EQ(Value("clicks", "sum"), 100);
}

TEST_F(KvReportLoad, DeletedPointsComeBackWithTheSameFile) {
  const std::string file = File("a.csv", kThreePoints);
  Load({file});
  EXPECT_EQ(
      Json::parse(Ok({"report", "delete", "site", "clicks", "--from", "0", "--to", "2000", "--json"}))["ok"],
      true);
  EXPECT_EQ(Value("clicks", "sum"), 4);
  Load({file});
  EXPECT_EQ(Value("clicks", "sum"), 7);
}

TEST_F(KvReportLoad, AddedValuesOfAFileCountOnceToo) {
  const std::string file = File("a.csv", kThreePoints);
  Load({file});
  for (int i = 0; i < 3; ++i) Load({file, "--add"});
  EXPECT_EQ(Value("clicks", "sum"), 14);
  // Other batches of the same file would be other ones, and count again.
  const Output refused = Kv({"report", "load", "site", file, "--add", "--batch-points", "2"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("--batch-points: not with --add"), std::string::npos) << refused.err;
  EXPECT_EQ(Value("clicks", "sum"), 14);
  // A file that was changed is another file.
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::seconds(10));
  Load({file, "--add"});
  EXPECT_EQ(Value("clicks", "sum"), 21);
}

TEST_F(KvReportLoad, ABatchIsKnownByItsPrefixAndItsContents) {
  for (int i = 0; i < 2; ++i) Load({"-", "--format", "csv", "--add", "--batch", "monday"}, kThreePoints);
  EXPECT_EQ(Value("clicks", "sum"), 7);
  Load({"-", "--format", "csv", "--add", "--batch", "tuesday"}, kThreePoints);
  EXPECT_EQ(Value("clicks", "sum"), 14);
  // The same prefix by mistake: other points are not lost.
  Load({"-", "--format", "csv", "--add", "--batch", "monday"}, "time,country,clicks\n0,US,100\n");
  EXPECT_EQ(Value("clicks", "sum"), 114);
}

TEST_F(KvReportLoad, KilledInTheMiddleAndGivenAgainItCountsEverythingOnce) {
  constexpr int kLines = 300'000;
  std::string text = "time,country,clicks\n";
  for (int i = 0; i < kLines; ++i) {
    // The reject file says that two of the three batches were cut.
    text += i == 250'000 ? "0,US,x\n" : std::to_string(i) + "000,US,1\n";
  }
  const std::string file = File("a.csv", text);
  const std::vector<std::string> load = {"report", "load", "site", file, "--add", "--json"};
  const pid_t child = Fork([&] {
    std::vector<std::string> words = {KV_PROGRAM, "--data", (dir_ / "store").string()};
    words.insert(words.end(), load.begin(), load.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    return 127;
  });
  bool ended = false;
  while (!fs::exists(file + ".rejects") && !ended) ended = ::waitpid(child, nullptr, WNOHANG) != 0;
  // On a busy machine it may have come to its end, and the second load repeats a whole one.
  if (!ended) Kill(child);
  EXPECT_EQ(Json::parse(Ok(load))["points"], kLines - 1);
  EXPECT_EQ(Value("clicks", "sum"), kLines - 1);
  EXPECT_EQ(Value("clicks", "count"), kLines - 1);
}

TEST_F(KvReportLoad, SeveralFilesAtOnce) {
  const std::string a = File("a.csv", kThreePoints);
  const std::string b = File("b.jsonl", R"({"time":9000,"country":"DE","clicks":8})");
  const std::string c = File("c.csv", "time,country,clicks\n0,US,x\n");
  const Json loaded = Load({a, b, c});
  EXPECT_EQ(loaded["points"], 4);
  EXPECT_EQ(loaded["rejected"], 1);
  EXPECT_TRUE(fs::exists(c + ".rejects"));
  EXPECT_FALSE(fs::exists(a + ".rejects"));
  EXPECT_EQ(Value("clicks", "sum"), 15);
}

TEST_F(KvReportLoad, DatesAreThoseOfTheZone) {
  Load({"-", "--format", "csv", "--zone", "Europe/Berlin"}, "time,country,clicks\n1970-01-02,US,1\n");
  const Json answer = Json::parse(Ok(
      {"report", "query", "site", "clicks", "--from", "0", "--to", "1971-01-01", "--step", "1h", "--json"}));
  EXPECT_EQ(answer["series"][0]["points"], Json::parse("[[82800000,1]]"));
}

TEST_F(KvReportLoad, WhatCannotBeLoadedIsExplained) {
  Fails({"report", "load", "site", (dir_ / "none.csv").string()}, "NOT_FOUND: cannot open ");
  Fails({"report", "load", "sight", File("a.csv", kThreePoints)}, "there is no report 'sight'");
  Fails({"report", "load", "site", File("b.csv", "time,country,shoes\n0,US,1\n")},
        "heading: report 'site' has no segment key and no metric 'shoes'");
  const auto wrong = [&](const std::vector<std::string>& arguments, const std::string& text) {
    const Output output = Kv(arguments);
    EXPECT_EQ(output.code, 2) << output.err;
    EXPECT_NE(output.err.find(text), std::string::npos) << output.err;
  };
  wrong({"report", "load", "site", "-", "--format", "parquet"}, "parquet is not read from standard input");
  wrong({"report", "load", "site", "a.csv.gz"}, "zcat FILE | kv report load NAME - --format csv");
  wrong({"report", "load", "site", "a.txt"}, "the name does not say the format");
  wrong({"report", "load", "site"}, "--format: standard input has no name");
  wrong({"report", "load", "site", "-", "--format", "csv", "--add"},
        "--add: from standard input: name what you load");
  wrong({"report", "load", "site", "a.csv", "b.csv", "--batch", "x"},
        "--batch: names the batches of one file");
  wrong({"report", "load", "site", "a.csv", "b.csv", "--reject-file", "x"}, "--reject-file: is for one file");
  wrong({"report", "load", "site", "a.csv", "--batch", std::string(201, 'x')},
        "--batch: has 201 bytes, the limit is 200");
  wrong({"report", "load", "site", "a.csv", "--zone", "Berlin"}, "no zone 'Berlin'");
  for (const char* const text : {"--batch-points: Value 0 not in range", "1000000"}) {
    wrong({"report", "load", "site", "a.csv", "--batch-points", "0"}, text);
  }
}

}  // namespace
}  // namespace kvstore::testing
