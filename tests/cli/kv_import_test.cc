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

TEST_F(KvImport, LinesAddUpToAll) {
  const std::string lines = Line(1) + "\n" + "oops\n" + " \t\n" + Line(2);
  const Output output = Kv({"import", "events"}, lines);
  EXPECT_EQ(output.code, 0);
  EXPECT_TRUE(output.out.starts_with("5 lines: 2 imported, 1 rejected, 2 blank, in ")) << output.out;
  const Json json = Json::parse(Ok({"import", "events", "--json", File("in.jsonl", lines)}));
  EXPECT_EQ(json["lines"], 5);
  EXPECT_EQ(json["imported"].get<int>() + json["rejected"].get<int>() + json["blank"].get<int>(), 5);
  const Json compared = Json::parse(Ok({"import", "events", "--only-changes", "--json", dir_ / "in.jsonl"}));
  EXPECT_EQ(compared["same"].get<int>() + compared["rejected"].get<int>() + compared["blank"].get<int>(), 5);
}

TEST_F(KvImport, RejectsOfStandardInputAreTold) {
  std::string lines = Line(1) + "\n";
  for (int i = 0; i < 10; ++i)
    lines += R"({"row":"x","more":1})"
             "\n";
  const Output output = Kv({"import", "events"}, lines);
  EXPECT_EQ(output.code, 0);
  EXPECT_TRUE(output.out.starts_with("12 lines: 1 imported, 10 rejected, 1 blank, in ")) << output.out;
  EXPECT_TRUE(output.err.starts_with("line 3: ")) << output.err;
  EXPECT_NE(output.err.find("\nline 7: "), std::string::npos) << output.err;
  EXPECT_EQ(output.err.find("line 8"), std::string::npos) << output.err;
  EXPECT_NE(output.err.find("and 5 more\n"), std::string::npos) << output.err;
  EXPECT_NE(output.err.find("--reject-file FILE would keep them"), std::string::npos) << output.err;

  const Json json = Json::parse(Ok({"import", "events", "--json"}, lines));
  EXPECT_EQ(json["first_rejected"].size(), 5u);
  EXPECT_EQ(json["first_rejected"][0]["line"], 3);
  EXPECT_NE(json["first_rejected"][0]["error"], "");

  const std::string kept = (dir_ / "kept").string();
  const std::string out = Ok({"import", "events", "--reject-file", kept}, lines);
  EXPECT_NE(out.find("rejected lines are in " + kept), std::string::npos) << out;
  EXPECT_EQ(ReadLine(kept, 9)["line"], 12);
}

TEST_F(KvImport, TheRejectFileIsOfTheLastImport) {
  const std::string file = File("in.jsonl", "oops\n" + Line(1));
  Ok({"import", "events", file});
  EXPECT_EQ(ReadLine(file + ".rejects")["line"], 1);
  File("in.jsonl", Line(1));
  Ok({"import", "events", file});
  EXPECT_FALSE(std::filesystem::exists(file + ".rejects"));
}

TEST_F(KvImport, GoesOnWhereItWasStopped) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += Line(i);
  const std::string file = File("in.jsonl", text);
  // The state that a process leaves behind which was killed after 30 lines.
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
  // A document may nest 100 deep.
  std::string deep = "{}";
  for (int i = 1; i < 100; ++i) deep = R"({"a":)" + deep + "}";
  const Json objects =
      Json::parse(Ok({"import", "pins", "--json"},
                     "{\"data\":{\"a\":1},\"shard\":5}\n{\"data\":[]}\n{\"data\":" + deep + "}\n"));
  EXPECT_EQ(objects["imported"], 2);
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

TEST_F(KvImport, TakesWhatAScanPrints) {
  Ok({"import", "events"}, Line(1) + Line(2) + Line(3));
  const std::string scanned = Ok({"scan", "events", "--all", "--json"});
  Ok({"dataset", "create", "copy", "--max-versions", "0"});
  const std::string out = Ok({"import", "copy"}, scanned);
  EXPECT_TRUE(out.starts_with("4 lines: 3 imported, 0 rejected, 1 marker, in ")) << out;
  EXPECT_EQ(Ok({"scan", "copy", "--all", "--json"}), scanned);

  // Both forms may stand in one line.
  Ok({"import", "copy"},
     R"({"row":"r4","items":[{"column":"x","value":"v","timestamp":4},{"column":"y","cells":[)"
     R"({"timestamp":4,"value":{"b64":"/w=="}},{"timestamp":5,"value":""}]}]})"
     "\n");
  EXPECT_EQ(Ok({"get", "copy", "r4", "--json", "--versions", "2"}),
            R"({"items":[{"cells":[{"timestamp":4,"value":"v"}],"column":"x"},{"cells":[)"
            R"({"timestamp":5,"value":""},{"timestamp":4,"value":{"b64":"/w=="}}],"column":"y"}],)"
            R"("marker":null,"ok":true,"row":"r4"})"
            "\n");
}

TEST_F(KvImport, SaysThatAScanWasNotAtItsEnd) {
  Ok({"import", "events"}, Line(1) + Line(2) + Line(3));
  Ok({"dataset", "create", "copy"});
  const std::string first = Ok({"scan", "events", "--json", "--limit", "2"});
  const Output output = Kv({"import", "copy"}, first);
  EXPECT_EQ(output.code, 0);
  EXPECT_NE(output.err.find("the scan was not at its end"), std::string::npos) << output.err;
  EXPECT_EQ(Json::parse(Ok({"import", "copy", "--json"}, first))["more_follow"], true);
  const std::string marker = Json::parse(first.substr(first.rfind('\n', first.size() - 2)))["marker"];
  const Json both = Json::parse(
      Ok({"import", "copy", "--json"}, first + Ok({"scan", "events", "--json", "--marker", marker})));
  EXPECT_EQ(both["more_follow"], false);
  EXPECT_EQ(both["imported"], 3);
  EXPECT_EQ(both["markers"], 2);
}

TEST_F(KvImport, MistakesInScannedItemsAreNamed) {
  const auto error = [&](const std::string& item) {
    const std::string file = File("in.jsonl", Line(1) + R"({"row":"r","items":[)" + item + "]}\n");
    Ok({"import", "events", file});
    return ReadLine(file + ".rejects")["error"].get<std::string>();
  };
  EXPECT_EQ(error(R"({"column":"x","cells":[]})"), "items[0].cells: must be an array with at least one cell");
  EXPECT_EQ(error(R"({"column":"x","cells":7})"), "items[0].cells: must be an array, not number");
  EXPECT_EQ(error(R"({"column":"x","cells":[{"value":"v"}]})"), "items[0].cells[0].timestamp: missing");
  EXPECT_EQ(error(R"({"column":"x","cells":[{"timestamp":1}]})"), "items[0].cells[0].value: missing");
  EXPECT_EQ(error(R"({"cells":[{"timestamp":1,"value":"v"}]})"), "items[0].column: missing");
  EXPECT_EQ(error(R"({"column":"x","cells":[{"timestamp":1,"value":"v"}],"value":"v"})"),
            "items[0].value: unknown field");
  EXPECT_EQ(Rows(), 1u);
}

TEST_F(KvImport, AnImportThatStoresNothingFails) {
  const auto fails = [&](const std::vector<std::string>& arguments, const std::string& input,
                         const std::string& text) {
    const Output output = Kv(arguments, input);
    EXPECT_EQ(output.code, 1) << output.out;
    EXPECT_NE(output.err.find(text), std::string::npos) << output.err;
  };
  fails({"import", "events"}, "", "standard input has no lines, so nothing was imported");
  fails({"import", "events"}, "\n \n", "standard input has no lines");
  fails({"import", "events", "--verify"}, "", "standard input has no lines, so nothing was compared");
  const std::string file = File("in.jsonl", "oops\n{\"marker\":7}\n{\"x\":\"marker\"}\n");
  fails({"import", "events", file}, "", "nothing was imported: no line of " + file + " is valid");
  EXPECT_EQ(ReadLine(file + ".rejects", 2)["line"], 3);
  EXPECT_FALSE(fs::exists(file + ".progress"));
  fails({"import", "events"}, "oops\n", "line 1: not JSON");
  const Output json = Kv({"import", "events", file, "--json"});
  EXPECT_EQ(json.code, 1);
  EXPECT_EQ(Json::parse(json.out)["ok"], false);
  EXPECT_EQ(Json::parse(json.out)["rejected"], 3);
  EXPECT_EQ(Json::parse(json.err)["error"]["code"], "INVALID_ARGUMENT");
  // A line that is stored already need not be stored again.
  Ok({"import", "events"}, Line(1));
  const std::string again = File("again.jsonl", Line(1) + "oops\n");
  Ok({"import", "events", again, "--only-changes"});
}

// ---- repeated imports ----

class KvImportAgain : public KvImport {
 protected:
  Json Pass(const std::string& dataset, const std::string& file, std::vector<std::string> more = {}) {
    std::vector<std::string> args = {"import", dataset, file, "--only-changes", "--json"};
    args.insert(args.end(), more.begin(), more.end());
    return Json::parse(Ok(args));
  }
  /// new, changed, same, rejected
  static std::vector<int> Counts(const Json& pass) {
    return {pass["new"], pass["changed"], pass["same"], pass["rejected"]};
  }
};

TEST_F(KvImportAgain, RowsAreWrittenOnceAndAgainWhenTheyChange) {
  const std::string file = File("in.jsonl", Line(1) + Line(2) + Line(3));
  EXPECT_EQ(Counts(Pass("events", file)), (std::vector<int>{3, 0, 0, 0}));
  EXPECT_EQ(Counts(Pass("events", file)), (std::vector<int>{0, 0, 3, 0}));
  std::string changed = Line(1) + Line(2) + Line(3) + Line(4);
  changed.replace(changed.find("\"v\""), 3, "\"w\"");
  const std::string newer = File("newer.jsonl", changed + "oops\n");
  EXPECT_NE(Kv({"import", "events", newer, "--verify"}).code, 0);
  EXPECT_EQ(ReadLine(newer + ".rejects")["error"], "something else is there");
  EXPECT_EQ(ReadLine(newer + ".rejects", 1)["error"], "is not there");
  EXPECT_EQ(Rows(), 3u) << "nothing was written";
  EXPECT_EQ(Counts(Pass("events", newer)), (std::vector<int>{1, 1, 2, 1}));
  EXPECT_EQ(Counts(Pass("events", newer)), (std::vector<int>{0, 0, 4, 1}));
  Ok({"import", "events", File("good.jsonl", changed), "--verify"});
  EXPECT_EQ(Json::parse(Ok({"get", "events", "r1", "--versions", "9", "--json"}))["items"][0]["cells"].size(),
            1u);
}

TEST_F(KvImportAgain, ACellThatIsNamedTwiceIsRejectedAsWithoutAComparison) {
  const std::string stored = R"({"column":"x","timestamp":5,"value":"stored"})";
  Ok({"import", "events", File("once.jsonl", R"({"row":"twice","items":[)" + stored + "]}\n")});
  const std::string file =
      File("twice.jsonl", R"({"row":"twice","items":[{"column":"x","timestamp":5,"value":"other"},)" +
                              stored + "]}\n" + Line(1));
  EXPECT_EQ(Counts(Pass("events", file)), (std::vector<int>{1, 0, 0, 1}));
  EXPECT_NE(ReadLine(file + ".rejects")["error"].get<std::string>().find("twice in one put"),
            std::string::npos);
  EXPECT_NE(Ok({"get", "events", "twice"}).find("stored"), std::string::npos);
}

TEST_F(KvImportAgain, ACellWithoutATimestampIsComparedWithTheNewest) {
  const auto line = [](const std::string& value) {
    return R"({"row":"r","items":[{"column":"a","value":")" + value + R"("},{"column":"b","value":"x"}]})" +
           "\n";
  };
  EXPECT_EQ(Counts(Pass("events", File("1", line("1")))), (std::vector<int>{1, 0, 0, 0}));
  EXPECT_EQ(Counts(Pass("events", File("1", line("1")))), (std::vector<int>{0, 0, 1, 0}));
  EXPECT_EQ(Counts(Pass("events", File("2", line("2")))), (std::vector<int>{0, 1, 0, 0}));
  const Json row = Json::parse(Ok({"get", "events", "r", "--versions", "9", "--json"}));
  EXPECT_EQ(row["items"][0]["cells"].size(), 2u);
  EXPECT_EQ(row["items"][1]["cells"].size(), 1u) << "b has not changed";
}

TEST_F(KvImportAgain, WhatNobodyWouldSeeCountsAsThere) {
  Ok({"dataset", "create", "two", "--max-versions", "2", "--ttl-ms", "3600000"});
  const uint64_t now = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                                 std::chrono::system_clock::now().time_since_epoch())
                                                 .count());
  std::string lines;
  // The oldest of three is surplus; one is expired.
  for (const uint64_t age : {1'000u, 2'000u, 3'000u, 7'200'000u}) {
    lines +=
        Json{{"row", "r"}, {"items", {{{"column", "c"}, {"value", "v"}, {"timestamp", now - age}}}}}.dump() +
        "\n";
  }
  const std::string file = File("in.jsonl", lines);
  Pass("two", file);
  EXPECT_EQ(Counts(Pass("two", file)), (std::vector<int>{0, 0, 4, 0}));
  Ok({"import", "two", file, "--verify"});
}

TEST_F(KvImportAgain, RowsHaveNoKeysElsewhere) {
  Ok({"dataset", "create", "rows"});
  Ok({"dataset", "create", "keys"});
  const std::string file = File("lines", R"({"row":"r","items":[{"column":"c","value":"v"}]})"
                                         "\n");
  Fails({"import", "rows", file, "--keys", "keys"}, "--keys: 'rows' has rows");
  EXPECT_EQ(Ok({"scan", "rows"}), "(none)\n");
}

TEST_F(KvImportAgain, ObjectsAndMappingsAreFoundByTheirKeysElsewhere) {
  Ok({"dataset", "create", "pins", "--shape", "objects"});
  Ok({"dataset", "create", "board_pins", "--shape", "mappings"});
  Ok({"dataset", "create", "keys"});
  const auto pin = [](const std::string& key, const std::string& title) {
    return Json{{"key", key}, {"data", {{"title", title}}}}.dump() + "\n";
  };
  const std::vector<std::string> keys = {"--keys", "keys"};
  const std::string pins = File("pins", pin("p1", "chair") + pin("p2", "table") + pin("p1", "chair"));
  EXPECT_EQ(Counts(Pass("pins", pins, keys)), (std::vector<int>{2, 0, 1, 0})) << "p1 is there twice";
  EXPECT_EQ(Counts(Pass("pins", pins, keys)), (std::vector<int>{0, 0, 3, 0}));
  EXPECT_EQ(Counts(Pass("pins", File("newer", pin("p1", "armchair") + pin("p3", "lamp")), keys)),
            (std::vector<int>{1, 1, 0, 0}));
  const std::string id = Json::parse(Ok({"get", "keys", "p1", "--json"}))["items"][0]["cells"][0]["value"];
  EXPECT_EQ(Json::parse(Ok({"object", "get", "pins", id, "--json"}))["data"]["title"], "armchair");
  EXPECT_NE(
      Kv({"import", "pins", pins, "--only-changes"}).code + ReadLine(pins + ".rejects")["line"].get<int>(),
      0);
  EXPECT_NE(std::string(ReadLine(pins + ".rejects")["error"]).find("--keys"), std::string::npos);

  const auto link = [](const std::string& to, int sequence) {
    return Json{{"from", {{"key", "p1"}}}, {"to", {{"key", to}}}, {"sequence", sequence}}.dump() + "\n";
  };
  const std::string links = File("links", link("p2", 1) + link("p3", 2) + link("nobody", 3));
  EXPECT_EQ(Counts(Pass("board_pins", links, keys)), (std::vector<int>{2, 0, 0, 1}));
  EXPECT_EQ(Counts(Pass("board_pins", links, keys)), (std::vector<int>{0, 0, 2, 1}));
  EXPECT_EQ(Counts(Pass("board_pins", File("moved", link("p2", 7) + link("p3", 2)), keys)),
            (std::vector<int>{0, 1, 1, 0}));
}

TEST_F(KvImportAgain, OfSeveralLinesOfAnObjectTheLastOneStays) {
  Ok({"dataset", "create", "pins", "--shape", "objects"});
  const std::string id = Json::parse(Ok({"object", "create", "pins", R"({"n":1})", "--json"}))["object_id"];
  const auto line = [&](int n) { return Json{{"id", id}, {"data", {{"n", n}}}}.dump() + "\n"; };
  EXPECT_EQ(Counts(Pass("pins", File("pins", line(2) + line(1) + line(1)))), (std::vector<int>{0, 2, 1, 0}));
  EXPECT_EQ(Json::parse(Ok({"object", "get", "pins", id, "--json"}))["data"]["n"], 1);
}

TEST_F(KvImportAgain, APassOfAnotherKindIsNotGoneOnWith) {
  const std::string file = File("in.jsonl", Line(1));
  std::ofstream(file + ".progress") << Json{
      {"dataset", "events"}, {"file_bytes", fs::file_size(file)},
      {"mode", "all"},       {"offset", 0},
      {"lines", 0},          {"imported", 0},
      {"rejected", 0},       {"new", 0},
      {"changed", 0},        {"same", 0}}.dump();
  EXPECT_NE(Kv({"import", "events", file, "--verify"}).code, 0);
  Ok({"import", "events", file});
}

}  // namespace
}  // namespace kvstore::testing
