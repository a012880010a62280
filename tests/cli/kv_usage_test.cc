#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/kv_program.h"

/// Tests of what `kv` prints for wrong command lines, and with --help.
namespace kvstore::testing {
namespace {

using Json = nlohmann::json;

class KvUsage : public KvProgram {
 protected:
  /// Expects exit code 2, nothing on standard output, and all of these texts on standard error.
  void Wrong(const std::vector<std::string>& arguments, const std::vector<std::string>& texts) const {
    const Output output = Kv(arguments);
    EXPECT_EQ(output.code, 2) << output.err;
    EXPECT_EQ(output.out, "");
    for (const std::string& text : texts) {
      EXPECT_NE(output.err.find(text), std::string::npos) << "'" << text << "' is not in: " << output.err;
    }
  }
  static std::string Help(std::vector<std::string> command) {
    command.insert(command.begin(), KV_PROGRAM);
    command.emplace_back("--help");
    const Output output = RunProgram(command);
    EXPECT_EQ(output.code, 0) << output.err;
    return output.out;
  }
  /// Returns the commands that the help of a command lists.
  static std::vector<std::string> Below(const std::string& help) {
    std::vector<std::string> names;
    for (size_t at = help.find("\nSubcommands:\n"); at != std::string::npos;) {
      at = help.find("\n  ", at);
      if (at == std::string::npos) break;
      at += 3;
      // Continuation lines of descriptions begin further to the right.
      if (help[at] != ' ') names.push_back(help.substr(at, help.find_first_of(" \n", at) - at));
      if (help.substr(help.find('\n', at), 2) == "\n\n") break;
    }
    return names;
  }
  /// Returns every command, by the words that lead to it.
  static void Walk(const std::vector<std::string>& path, std::vector<std::vector<std::string>>& all) {
    const std::string help = Help(path);
    for (const std::string& name : Below(help)) {
      std::vector<std::string> next = path;
      next.push_back(name);
      all.push_back(next);
      Walk(next, all);
    }
  }
};

TEST_F(KvUsage, AnUnknownCommandIsNamedWithWhatMayBeMeant) {
  Wrong({"list"}, {"kv: there is no command 'list'; did you mean kv dataset list, or kv mapping list"});
  Wrong({"ls"}, {"'ls'", "kv dataset list"});
  Wrong({"del", "events", "user:7"}, {"kv: there is no command 'del'; did you mean kv delete"});
  Wrong({"dataset", "ls"}, {"kv dataset: there is no command 'ls'; did you mean kv dataset list?"});
  Wrong({"dataset", "rm", "events"}, {"kv dataset drop"});
  Wrong({"mapping", "del", "b", "1", "2"}, {"kv mapping remove"});
  Wrong({"create", "events"}, {"kv dataset create"});
  Wrong({"scna", "events"}, {"'scna'; did you mean kv scan?"});
  Wrong({"dataset", "crate", "events"}, {"'crate'; did you mean kv dataset create?"});
  Wrong({"shards", "move", "stauts"},
        {"kv shards move: there is no command 'stauts'", "kv shards move status"});
  Wrong({"help"}, {"did you mean kv --help?"});
  Wrong({"nonsense"}, {"kv: there is no command 'nonsense'\n", "kv --help says more"});
  Wrong({"\x1b[31mlist"}, {"there is no command '\\x1B[31mlist'"});
}

TEST_F(KvUsage, AMissingCommandIsAskedFor) {
  Wrong({}, {"kv: name a command: put, get, delete, scan, dataset"});
  Wrong({"dataset"}, {"kv dataset: name a command: create, list, show, alter, drop\n"});
}

TEST_F(KvUsage, AnUnknownOptionIsNamedWithTheNearest) {
  Wrong({"dataset", "create", "x", "--ttl", "1h"},
        {"kv dataset create: there is no option --ttl; did you mean --ttl-ms?", "kv dataset create --help"});
  Wrong({"get", "events", "r", "--verions=2"}, {"there is no option --verions; did you mean --versions"});
  Wrong({"get", "--verions", "2"}, {"there is no option --verions; did you mean --versions"});
  Wrong({"--jsn", "dataset", "list"}, {"kv dataset list: there is no option --jsn; did you mean --json?"});
  Wrong({"get", "events", "r", "--colour"}, {"there is no option --colour\n"});
  Wrong({"scan", "events", "-n", "5"}, {"there is no option -n\n"});
  Wrong({"dataset", "show", "a", "b"}, {"kv dataset show: 'b' was not expected", "Usage: kv dataset show"});
}

TEST_F(KvUsage, ACommandHasNoVersion) {
  Wrong({"get", "events", "r", "--version", "2"},
        {"kv get: there is no option --version; did you mean --versions?"});
  Wrong({"dataset", "list", "--version"}, {"kv dataset list: there is no option --version\n"});
  const Output version = RunProgram({KV_PROGRAM, "--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out.substr(0, 3), "kv ");
}

TEST_F(KvUsage, ArgumentsOfAWrongFormAreWrongUsage) {
  Ok({"dataset", "create", "events"});
  Wrong({"put", "events", "r", "click"}, {"kv put: 'click': must be COLUMN=VALUE"});
  Wrong({"put", "events", "r", "a=1", "--if-equals", "a"},
        {"kv put: --if-equals: 'a': must be COLUMN=VALUE"});
  Wrong({"--escaped", "put", "events", R"(\q)", "a=1"}, {"kv put: ", "begins neither"});
  Wrong({"id", "decode", "7"}, {"kv id decode: "});
  Wrong({"token", "web", "--right", "*", "read", "--right", "*", "write"}, {"--right: '*' is given twice"});
  Wrong({"token", "web", "--limit", "max_calls", "1", "--limit", "max_calls", "2"},
        {"--limit: 'max_calls' is given twice"});
  Wrong({"token", "web", "--right", "*", "own"},
        {"kv token: ", "must be \"none\", \"read\", \"write\" or \"admin\""});
  Wrong({"config", "check"}, {"kv config check: file is missing"});
  Wrong({"shards", "get"}, {"kv shards get: zookeeper: name its servers with --zookeeper"});
  Wrong({"shards", "move", "--to", "A,B"}, {"range: name the shards with --range FIRST-LAST"});
  Wrong({"shards", "move", "--range", "5", "--to", "A,B"}, {"range: '5' is not a range of shards"});
  Wrong({"shards", "move", "--range", "0-7"}, {"to: name the new pair with --to MASTER,SLAVE"});
  EXPECT_EQ(Ok({"get", "events", "r"}), "(none)\n") << "nothing was written";
}

TEST_F(KvUsage, WhatIsMissingIsDescribed) {
  Wrong({"put", "events", "user:9"},
        {"kv put: columns is missing: COLUMN=VALUE", "Usage: kv put [OPTIONS] dataset row columns..."});
  Wrong({"get"}, {"kv get: dataset is missing", "Usage: kv get"});
  Wrong({"migrate", "create", "events"}, {"kv migrate create: --to is missing: The backend to migrate to"});
}

TEST_F(KvUsage, DurationsMayHaveUnits) {
  Ok({"dataset", "create", "events", "--ttl-ms", "30d"});
  EXPECT_EQ(Json::parse(Ok({"dataset", "show", "events", "--json"}))["ttl_ms"], 2'592'000'000);
  Ok({"dataset", "alter", "events", "--ttl-ms", "1w12h"});
  EXPECT_EQ(Json::parse(Ok({"dataset", "show", "events", "--json"}))["ttl_ms"], 648'000'000);
  Ok({"dataset", "alter", "events", "--ttl-ms", "1500"});
  EXPECT_EQ(Json::parse(Ok({"dataset", "show", "events", "--json"}))["ttl_ms"], 1'500);
  for (const char* bad : {"1.5h", "-1", "soon"}) {
    Wrong({"dataset", "alter", "events", "--ttl-ms", bad},
          {"--ttl-ms: '" + std::string(bad) + "': give a whole number of milliseconds",
           "500ms, 10s, 5m, 1h30m, 30d, 2w"});
  }
  EXPECT_EQ(Json::parse(Ok({"dataset", "show", "events", "--json"}))["ttl_ms"], 1'500) << "nothing changed";
  Ok({"--timeout-ms", "10s", "dataset", "list"});
  Wrong({"--timeout-ms", "50d", "dataset", "list"},
        {"--timeout-ms: '50d' is beyond the limit of 4294967295 ms"});
  Wrong({"--timeout-ms", "0", "dataset", "list"}, {"--timeout-ms", "no call ends in 0 ms"});
  Wrong({"migrate", "create", "events", "--to", "mysql", "--freeze-ms", "2m"},
        {"--freeze-ms: Value 120000 not in range", "60000"});
  EXPECT_NE(Help({"dataset", "create"}).find("--ttl-ms MS|10s|1h30m|30d"), std::string::npos);
}

TEST_F(KvUsage, TimesMayBeDates) {
  Ok({"dataset", "create", "events", "--max-versions", "0"});
  Ok({"put", "events", "r", "a=1", "--timestamp", "2026-01-01T12:30:00Z"});
  EXPECT_EQ(Ok({"get", "events", "r"}), "COLUMN  TIMESTAMP      VALUE\na       1767270600000  1\n");
  EXPECT_EQ(Ok({"get", "events", "r", "--start-timestamp", "2026-01-02"}), "(none)\n");
  EXPECT_NE(Ok({"scan", "events", "--start-timestamp", "2026-01-01", "--end-timestamp", "2026-01-02"}),
            "(none)\n");
  EXPECT_EQ(Ok({"scan", "events", "--start-timestamp", "-1h", "--end-timestamp", "now"}), "(none)\n");
  EXPECT_NE(Ok({"scan", "events", "--end-timestamp", "yesterday"}), "(none)\n");
  Ok({"delete", "events", "r", "a", "--timestamp", "2026-01-01T12:30Z"});
  EXPECT_EQ(Ok({"get", "events", "r"}), "(none)\n");
  Wrong({"put", "events", "r", "a=1", "--timestamp", "-1"}, {"--timestamp: '-1': a time is not negative"});
  Wrong({"get", "events", "r", "--start-timestamp", "-1x"}, {"what follows the - is no duration"});
  Wrong({"delete", "events", "r", "--timestamp", "1000"}, {"--timestamp: name the columns"});
  Wrong({"get", "events", "r", "--start-timestamp", "2026-02-30"}, {"'2026-02-30': there is no such day"});
  Wrong({"get", "events", "r", "--end-timestamp", "2026-01-01T12:30:00"}, {"Z at its end"});
  EXPECT_EQ(Ok({"get", "events", "r"}), "(none)\n");
  for (const char* command : {"put", "get", "scan", "delete"}) {
    EXPECT_NE(Help({command}).find("milliseconds since 1970"), std::string::npos) << command;
  }
}

TEST_F(KvUsage, APutThatNoReadShowsSaysSo) {
  Ok({"dataset", "create", "events", "--ttl-ms", "1h"});
  const Output old = Kv({"put", "events", "r", "a=1", "--timestamp", "2026-01-01"});
  EXPECT_EQ(old.code, 0);
  EXPECT_EQ(
      old.err,
      "written, and no read shows it: the timestamp is older than the time to live of events, 3600000 ms\n");
  EXPECT_EQ(Ok({"get", "events", "r"}), "(none)\n");
  EXPECT_EQ(Kv({"put", "events", "r", "a=1", "--timestamp", "-1m"}).err, "");
}

TEST_F(KvUsage, AnOptionIsProposedOnce) {
  Wrong({"get", "--hlp"}, {"there is no option --hlp; did you mean --help?"});
  Wrong({"put", "events", "r", "-c=v"}, {"there is no option -c", "events -- user:7 -x=1"});
}

TEST_F(KvUsage, APortIsChecked) {
  for (const char* port : {"0", "65536", "99999"}) {
    const Output output =
        RunProgram({KV_PROGRAM, "--server", std::string("127.0.0.1:") + port, "dataset", "list"});
    EXPECT_NE(output.err.find("is not 1 to 65535"), std::string::npos) << output.err;
  }
}

TEST_F(KvUsage, NumbersBelowZeroAreNamed) {
  Ok({"dataset", "create", "pins", "--shape", "objects"});
  Wrong({"object", "get", "pins", "-1"}, {"'-1' is not a whole number"});
  Wrong({"object", "create", "pins", "{}", "--near", "-1"}, {"--near: '-1' is not a whole number"});
  Wrong({"mapping", "add", "m", "1", "2", "--sequence", "-1"}, {"--sequence: '-1' is not a whole number"});
  Wrong({"scan", "events", "--limit", "-1"}, {"--limit: '-1' is not a whole number"});
  Wrong({"get", "events", "r", "--versions", "0x10"}, {"--versions: '0x10' is not a whole number"});
}

TEST_F(KvUsage, ANumberBeyondItsVariableIsToldTheLimit) {
  Wrong({"dataset", "create", "ev", "--max-versions", "4294967296"},
        {"--max-versions: '4294967296' is beyond the limit of 4294967295"});
  Wrong({"object", "create", "pins", "{}", "--shard", "65536"}, {"'65536' is beyond the limit of 65535"});
  Wrong({"get", "events", "r", "--versions", "4294967296"}, {"--versions", "4294967295"});
}

TEST_F(KvUsage, APageOfNothingIsWrongUsage) {
  Wrong({"get", "events", "r", "--versions", "0"}, {"--versions"});
  Wrong({"scan", "events", "--versions", "0"}, {"--versions"});
  Wrong({"mapping", "list", "m", "1", "--limit", "0"}, {"--limit"});
}

TEST_F(KvUsage, WhatTheParserRefusesIsASentence) {
  Wrong({"dataset", "create", "ev", "--max-versions", "1", "--max-versions", "2"},
        {"kv dataset create: --max-versions was given 2 times, and may be given once\n"});
  Wrong({"put", "events", "r", "a=1", "--timestamp"},
        {"kv put: --timestamp: a value is missing: Timestamp of the cells"});
  Wrong({"token", "web", "--right", "*"}, {"kv token: --right: a value is missing: DATASET"});
  Wrong({"dataset", "create", "ev", "--shape", "foo"},
        {"kv dataset create: --shape: 'foo' is not one of rows, objects, mappings\n"});
  Wrong({"dataset", "list", "--json=maybe"}, {"kv dataset list: --json takes no value\n"});
}

TEST_F(KvUsage, AnEmptyValueIsNotTheSameAsNone) {
  Ok({"dataset", "create", "events", "--keep-changes-ms", "1h"});
  Wrong({"changes", "events", "--consumer", "search", "--from", "begin", "--follow", "--sink", ""},
        {"kv changes: --sink: must not be empty\n"});
  Wrong({"changes", "events", "--consumer", ""}, {"--consumer: must not be empty"});
  EXPECT_EQ(Json::parse(Ok({"consumers", "list", "events", "--json"}))["consumers"].size(), 0u);
  const std::string backups = "file:" + (dir_ / "backups").string();
  Ok({"backup", "create", "--to", backups});
  Ok({"backup", "create", "--to", backups});
  for (const char* option : {"--dataset", "--host"}) {
    Wrong({"backup", "prune", "--from", backups, option, "", "--keep", "1"},
          {std::string(option) + ": must not be empty"});
  }
  Wrong({"backup", "show", "--from", backups, "--backup", ""}, {"--backup: must not be empty"});
  EXPECT_EQ(Json::parse(Ok({"backup", "list", "--from", backups, "--json"}))["backups"].size(), 2u);
  Wrong({"config", "check", ""}, {"file: must not be empty"});
  // Columns, rows and markers may be empty.
  Ok({"put", "events", "r", "=1", "--if-absent", "", "--timestamp", "5"});
  EXPECT_EQ(Ok({"scan", "events", "--start-row", "", "--end-row", "", "--marker", "", "--columns", ""}),
            "ROW  COLUMN  TIMESTAMP  VALUE\nr            5          1\n");
  EXPECT_EQ(Ok({"get", "events", "r", ""}), "COLUMN  TIMESTAMP  VALUE\n        5          1\n");
}

TEST_F(KvUsage, WithJsonWrongUsageIsTextStill) {
  const Output output = Kv({"--json", "dataset", "list", "--nonsense"});
  EXPECT_EQ(output.code, 2);
  EXPECT_EQ(output.out, "");
  EXPECT_TRUE(output.err.starts_with("kv dataset list: there is no option --nonsense")) << output.err;
}

TEST_F(KvUsage, ACallerHasAName) {
  Wrong({"token", ""}, {"name: must be 1 to 200 printable characters"});
  Wrong({"token", "a\nb"}, {"name: must be 1 to 200 printable characters"});
  Wrong({"token", std::string(201, 'a')}, {"name: must be 1 to 200 printable characters"});
  Wrong({"token", "web", "--right", "", "read"}, {"--right: must not be empty"});
  Ok({"token", std::string(200, 'a'), "--right", "*", "read"});
}

TEST_F(KvUsage, WhatCannotBeReadIsNamed) {
  const std::string broken = File("broken.json", "{oops");
  const Output output = RunProgram(
      {"env", "-u", "KV_DATA", "-u", "KV_SERVER", "KV_CONFIG=" + broken, KV_PROGRAM, "dataset", "list"});
  EXPECT_EQ(output.code, 1);
  EXPECT_NE(output.err.find("config: " + broken + ": not JSON"), std::string::npos) << output.err;
  Ok({"dataset", "create", "events"});
  const std::string folder = dir_.path().string();
  Fails({"import", "events", folder}, "cannot read " + folder + ": Is a directory");
  const Output served = Kv({"serve", "--listen", "127.0.0.1:99999"});
  EXPECT_EQ(served.code, 1);
  EXPECT_NE(served.err.find("server.listen[0]: the port of '127.0.0.1:99999' is greater than 65535"),
            std::string::npos)
      << served.err;
}

TEST_F(KvUsage, EachCommandHasItsOwnExampleAndExitCodes) {
  EXPECT_NE(Help({}).find("Begin here:"), std::string::npos);
  std::vector<std::vector<std::string>> all;
  Walk({}, all);
  EXPECT_GT(all.size(), 60u);
  for (const std::vector<std::string>& path : all) {
    std::string command = "kv";
    for (const std::string& word : path) command += " " + word;
    const std::string help = Help(path);
    EXPECT_EQ(help.find("Begin here:"), std::string::npos) << command;
    EXPECT_NE(help.find("Example"), std::string::npos) << command;
    EXPECT_NE(help.find("Exit codes:"), std::string::npos) << command;
    // The example is of this command, or of one below it.
    std::string words = path.front();
    for (size_t i = 1; i < path.size(); ++i) words += " " + path[i];
    EXPECT_NE(help.find(words, help.find("Example")), std::string::npos) << command << ":\n" << help;
  }
}

}  // namespace
}  // namespace kvstore::testing
