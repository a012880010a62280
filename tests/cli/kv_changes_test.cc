#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/kv_program.h"
#include "tests/support/eventually.h"

/// kv changes.
namespace kvstore::testing {
namespace {

using Json = nlohmann::json;

class KvChanges : public KvProgram {
 protected:
  static std::vector<Json> Lines(const std::string& text) {
    std::vector<Json> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
    return lines;
  }
  std::vector<Json> Changes(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "changes");
    return Lines(Ok(arguments));
  }
};

TEST_F(KvChanges, LinesHaveTheFormOfTheirShape) {
  Ok({"dataset", "create", "rows", "--max-versions", "0", "--keep-changes-ms", "1d"});
  Ok({"dataset", "create", "pins", "--shape", "objects", "--keep-changes-ms", "1d"});
  Ok({"dataset", "create", "boards", "--shape", "mappings", "--keep-changes-ms", "1d"});
  Ok({"put", "rows", "r", "c=v", "--timestamp", "5"});
  const std::string pin = Json::parse(Ok({"object", "create", "pins", R"({"a":1})", "--json"}))["object_id"];
  Ok({"mapping", "add", "boards", "1", "2", "--sequence", "3"});

  EXPECT_NE(Ok({"dataset", "show", "rows"}).find("changes are kept    86400000 ms"), std::string::npos);
  auto rows = Changes({"rows"});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["row"], "r");
  EXPECT_EQ(rows[0]["column"], "c");
  EXPECT_EQ(rows[0]["cells"], Json::parse(R"([{"timestamp":5,"value":"v"}])"));
  EXPECT_GT(rows[0]["at"], 1'700'000'000'000);
  EXPECT_EQ(rows[1].size(), 2u);
  EXPECT_EQ(rows[1]["token"], rows[0]["token"]);
  EXPECT_GE(rows[1]["complete_until"], rows[0]["at"]);

  const auto pins = Changes({"pins"});
  ASSERT_EQ(pins.size(), 2u);
  EXPECT_EQ(pins[0]["object_id"], pin);
  EXPECT_EQ(pins[0]["data"]["a"], 1);
  Ok({"object", "delete", "pins", pin, "--hard"});
  EXPECT_EQ(Changes({"pins", "--from", pins[1]["token"]})[0]["data"], nullptr);

  const auto boards = Changes({"boards"});
  ASSERT_EQ(boards.size(), 2u);
  EXPECT_EQ(boards[0]["from"], "1");
  EXPECT_EQ(boards[0]["to"], "2");
  EXPECT_EQ(boards[0]["sequence"], 3);
}

TEST_F(KvChanges, ASnapshotHasAllAndThenWhatFollows) {
  Ok({"dataset", "create", "rows", "--max-versions", "0"});
  Ok({"put", "rows", "a", "c=1", "--timestamp", "1"});
  Ok({"put", "rows", "a", "c=2", "--timestamp", "2"});
  Ok({"put", "rows", "b", "c=1", "d=1", "--timestamp", "1"});
  Ok({"dataset", "alter", "rows", "--keep-changes-ms", "1d"});
  const auto lines = Changes({"rows", "--snapshot"});
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0]["cells"].size(), 2u);
  EXPECT_EQ(lines[2]["column"], "d");
  Ok({"put", "rows", "c", "x=1"});
  EXPECT_EQ(lines[0]["token"], "snapshot");
  EXPECT_EQ(Changes({"rows", "--from", "snapshot"}).size(), 5u) << "nobody can go on within it";
  const auto more = Changes({"rows", "--from", lines[3]["token"]});
  ASSERT_EQ(more.size(), 2u);
  EXPECT_EQ(more[0]["row"], "c");
  EXPECT_EQ(Changes({"rows", "--snapshot", "--limit", "2"}).size(), 2u);
}

TEST_F(KvChanges, AFollowerPrintsWhatIsWrittenUntilItIsStopped) {
  Ok({"dataset", "create", "rows", "--keep-changes-ms", "1d"});
  const std::string out = (dir_ / "out").string();
  const std::string address = "unix:" + (dir_ / "socket").string();
  pid_t server = ForkProgram({KV_PROGRAM, "--data", (dir_ / "store").string(), "serve", "--listen", address},
                             (dir_ / "served").string());
  const auto text = [](const std::string& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_TRUE(
      Eventually([&] { return text((dir_ / "served").string()).find("serving") != std::string::npos; }));
  const pid_t follower = ForkProgram({KV_PROGRAM, "--server", address, "changes", "rows", "--follow"}, out);
  EXPECT_TRUE(Eventually([&] { return text(out).find("complete_until") != std::string::npos; }));
  EXPECT_EQ(RunProgram({KV_PROGRAM, "--server", address, "put", "rows", "r", "c=first"}).code, 0);
  EXPECT_TRUE(Eventually([&] { return text(out).find("first") != std::string::npos; }));
  EXPECT_EQ(RunProgram({KV_PROGRAM, "--server", address, "put", "rows", "r", "c=second"}).code, 0);
  EXPECT_TRUE(Eventually([&] { return text(out).find("second") != std::string::npos; }));
  ::kill(follower, SIGTERM);
  EXPECT_EQ(Wait(follower).code, 0);
  Kill(server);
}

TEST_F(KvChanges, AConsumerGoesOnWhereItWas) {
  Ok({"dataset", "create", "rows", "--keep-changes-ms", "1d"});
  Ok({"put", "rows", "a", "c=1"});
  Ok({"put", "rows", "b", "c=1"});
  Fails({"changes", "rows", "--consumer", "search"}, "say where it begins, with --from or --snapshot");
  auto lines = Changes({"rows", "--consumer", "search", "--from", "begin", "--limit", "1"});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["row"], "a");
  const Json noted = Json::parse(Ok({"consumers", "list", "rows", "--json"}))["consumers"];
  ASSERT_EQ(noted.size(), 1u);
  EXPECT_EQ(noted[0]["name"], "search");
  EXPECT_EQ(noted[0]["token"], lines[0]["token"]);
  EXPECT_GT(noted[0]["lag_ms"], 0);

  lines = Changes({"rows", "--consumer", "search"});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["row"], "b");
  EXPECT_EQ(Changes({"rows", "--consumer", "search"}).size(), 1u) << "nothing was written since";
  EXPECT_EQ(Json::parse(Ok({"consumers", "list", "rows", "--json"}))["consumers"][0]["lag_ms"], 0);
  EXPECT_NE(Ok({"consumers", "list", "rows"}).find("search  0 ms"), std::string::npos);

  // Another one begins by itself, or with the whole dataset.
  EXPECT_EQ(Changes({"rows", "--consumer", "other", "--from", "begin"}).size(), 3u);
  EXPECT_EQ(Changes({"rows", "--snapshot", "--consumer", "search"}).size(), 3u);
  Ok({"consumers", "set", "rows", "search", lines[0]["token"]});
  EXPECT_EQ(Changes({"rows", "--consumer", "search"}).size(), 1u);
  Ok({"consumers", "drop", "rows", "search"});
  Fails({"consumers", "drop", "rows", "search"}, "has no consumer named 'search'");
  Fails({"consumers", "set", "rows", "no/name", "now"}, "name: must be 1 to 64 letters");
  Fails({"consumers", "set", "rows", "search", "yesterday"}, "token: must be a token");
  Ok({"dataset", "create", "other"});
  Fails({"consumers", "list", "other"}, "kv dataset alter other --keep-changes-ms");
}

/// A sink that deals with so many lines, and then ends.
std::string SinkOf(int lines, const std::string& copy) {
  return "for i in $(seq " + std::to_string(lines) + "); do read -r line || exit 0; echo \"$line\" >>" +
         copy + R"x(; echo "$line" | sed 's/.*"token":"\([^"]*\)".*/\1/'; done)x";
}

TEST_F(KvChanges, AConsumerIsWhereItsSinkIs) {
  Ok({"dataset", "create", "rows", "--keep-changes-ms", "1d"});
  for (const char* row : {"a", "b", "c", "d"}) Ok({"put", "rows", row, "c=1"});
  Ok({"consumers", "set", "rows", "copy", "begin"});
  const std::string copy = (dir_ / "copy").string();
  const auto copied = [&] {
    std::ifstream file(copy);
    return Lines(std::string(std::istreambuf_iterator<char>(file), {}));
  };
  // One that ends early is told the rest the next time.
  Fails({"changes", "rows", "--follow", "--consumer", "copy", "--sink", SinkOf(2, copy)},
        "sink: the command has ended by itself");
  EXPECT_EQ(copied().size(), 2u);
  EXPECT_EQ(
      Ok({"changes", "rows", "--follow", "--consumer", "copy", "--limit", "2", "--sink", SinkOf(99, copy)}),
      "");
  const auto lines = copied();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[3]["row"], "d");
  EXPECT_EQ(Json::parse(Ok({"consumers", "list", "rows", "--json"}))["consumers"][0]["lag_ms"], 0);
  // One that fails says so, and one that prints something else moves nothing.
  Ok({"put", "rows", "e", "c=1"});
  Fails({"changes", "rows", "--follow", "--consumer", "copy", "--sink", "echo now; exit 3"}, "exit code 3");
  EXPECT_GT(Json::parse(Ok({"consumers", "list", "rows", "--json"}))["consumers"][0]["lag_ms"], 0);
}

TEST_F(KvChanges, ASnapshotThatItsSinkDidNotDealWithBeginsAgain) {
  Ok({"dataset", "create", "rows", "--keep-changes-ms", "1d"});
  for (const char* row : {"a", "b", "c", "d"}) Ok({"put", "rows", row, "c=1"});
  const std::string copy = (dir_ / "copy").string();
  Fails({"changes", "rows", "--follow", "--consumer", "copy", "--snapshot", "--sink", SinkOf(2, copy)},
        "sink: the command has ended by itself");
  EXPECT_TRUE(Json::parse(Ok({"consumers", "list", "rows", "--json"}))["consumers"].empty());
  Fails({"changes", "rows", "--follow", "--consumer", "copy", "--sink", SinkOf(9, copy)},
        "say where it begins");
}

TEST_F(KvChanges, MistakesAreExplained) {
  Ok({"dataset", "create", "rows"});
  Fails({"changes", "rows"}, "kv dataset alter rows --keep-changes-ms");
  Fails({"changes", "none"}, "there is none named 'none'");
  Ok({"dataset", "alter", "rows", "--keep-changes-ms", "1h"});
  Fails({"changes", "rows", "--from", "yesterday"}, "from: must be a token");
  EXPECT_EQ(Kv({"changes", "rows", "--from", "now", "--snapshot"}).code, 2);
  EXPECT_EQ(Kv({"changes", "rows", "--limit", "0"}).code, 2);
}

}  // namespace
}  // namespace kvstore::testing
