#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/cli/kv_program.h"

namespace kvstore::testing {
namespace {

using Json = nlohmann::json;

class KvCommand : public KvProgram {};

TEST_F(KvCommand, RowsAreWrittenReadAndDeleted) {
  EXPECT_EQ(Ok({"dataset", "create", "events", "--max-versions", "0"}), "created events\n");
  EXPECT_EQ(Ok({"put", "events", "user:7", "click=pin:3", "view=a=b", "--timestamp", "1700000000000"}), "");
  EXPECT_EQ(Ok({"put", "events", "user:7", "click=pin:4", "--timestamp", "1700000000001"}), "");
  EXPECT_EQ(Ok({"get", "events", "user:7", "--versions", "2"}),
            "COLUMN  TIMESTAMP      VALUE\n"
            "click   1700000000001  pin:4\n"
            "click   1700000000000  pin:3\n"
            "view    1700000000000  a=b\n");
  EXPECT_EQ(Ok({"get", "events", "user:7", "--end-timestamp", "1700000000001", "click"}),
            "COLUMN  TIMESTAMP      VALUE\n"
            "click   1700000000000  pin:3\n");
  EXPECT_EQ(Ok({"scan", "events"}),
            "ROW     COLUMN  TIMESTAMP      VALUE\n"
            "user:7  click   1700000000001  pin:4\n"
            "user:7  view    1700000000000  a=b\n");
  EXPECT_EQ(Ok({"delete", "events", "user:7", "click", "--timestamp", "1700000000001"}), "");
  EXPECT_EQ(Ok({"delete", "events", "user:7", "view"}), "");
  EXPECT_EQ(
      Ok({"get", "events", "user:7", "--json"}),
      R"({"items":[{"cells":[{"timestamp":1700000000000,"value":"pin:3"}],"column":"click"}],"marker":null,"ok":true,"row":"user:7"})"
      "\n");
  EXPECT_EQ(Ok({"delete", "events", "user:7"}), "");
  EXPECT_EQ(Ok({"get", "events", "user:7"}), "(none)\n");
}

TEST_F(KvCommand, PagesAreContinuedByTheMarkerThatIsPrinted) {
  Ok({"dataset", "create", "d"});
  Ok({"put", "d", "r", "a=1", "b=2", "c=3", "--timestamp", "5"});
  const std::string page = Ok({"get", "d", "r", "--limit", "2"});
  const size_t at = page.find("more: --marker ");
  ASSERT_NE(at, std::string::npos) << page;
  const std::string marker = page.substr(at + 15, page.size() - at - 16);
  EXPECT_EQ(Ok({"get", "d", "r", "--marker", marker}), "COLUMN  TIMESTAMP  VALUE\nc       5          3\n");
  EXPECT_EQ(Ok({"get", "d", "r", "--limit", "1", "--all"}),
            "COLUMN  TIMESTAMP  VALUE\na       5          1\nb       5          2\nc       5          3\n");
}

TEST_F(KvCommand, APageBeginsBehindAColumn) {
  Ok({"dataset", "create", "d"});
  Ok({"put", "d", "r", "=0", "a=1", "c=2", "--timestamp", "5"});
  const std::string header = "COLUMN  TIMESTAMP  VALUE\n";
  EXPECT_EQ(Ok({"get", "d", "r", "--after", "a"}), header + "c       5          2\n");
  EXPECT_EQ(Ok({"get", "d", "r", "--after", "b"}), header + "c       5          2\n");
  EXPECT_EQ(Ok({"get", "d", "r", "--after", "c"}), "(none)\n");
  const std::string behind_the_empty_name = header + "a       5          1\nc       5          2\n";
  EXPECT_EQ(Ok({"get", "d", "r", "--after", ""}), behind_the_empty_name);
  EXPECT_EQ(Ok({"get", "d", "r", "--after", "", "--limit", "1", "--all"}), behind_the_empty_name);
  EXPECT_EQ(Kv({"get", "d", "r", "--after", "a", "--marker", "m"}).code, 2);
}

TEST_F(KvCommand, ConditionsSayWhatFailed) {
  Ok({"dataset", "create", "d"});
  Ok({"put", "d", "r", "a=1", "--if-absent", "a"});
  Fails({"put", "d", "r", "a=2", "--if-absent", "a"}, "ALREADY_EXISTS");
  Fails({"put", "d", "r", "a=2", "--if-equals", "a=9"}, "FAILED_PRECONDITION");
  Ok({"put", "d", "r", "a=2", "--if-equals", "a=1", "--sync"});
}

TEST_F(KvCommand, BytesAreEscapedOnTheTerminalAndMayBeGivenSo) {
  Ok({"dataset", "create", "d"});
  Ok({"--escaped", "put", "d", R"(r\x00)", R"(c\xFF=v\\\x0A)", "--timestamp", "1"});
  EXPECT_EQ(Ok({"--escaped", "get", "d", R"(r\x00)"}),
            "COLUMN  TIMESTAMP  VALUE\nc\\xFF   1          v\\\\\\x0A\n");
  const Output bad = Kv({"--escaped", "get", "d", R"(\q)"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_NE(bad.err.find("begins neither"), std::string::npos) << bad.err;
}

TEST_F(KvCommand, DatasetsAreManaged) {
  Ok({"dataset", "create", "events", "--max-versions", "5", "--ttl-ms", "1000"});
  Fails({"dataset", "create", "events"}, "'events' exists");
  Ok({"dataset", "alter", "events", "--max-versions", "6"});
  const Json shown = Json::parse(Ok({"dataset", "show", "events", "--json"}));
  EXPECT_EQ(shown["max_versions"], 6);
  EXPECT_EQ(shown["ttl_ms"], 1000);
  EXPECT_NE(Ok({"dataset", "list"}).find("events"), std::string::npos);
  Fails({"dataset", "show", "none"}, "see which there are: kv dataset list");
  const Json compacted = Json::parse(Ok({"compact", "events", "--json"}));
  EXPECT_EQ(compacted["expired_cells"], 0);
  Ok({"dataset", "drop", "events", "--yes"});
  EXPECT_EQ(Ok({"dataset", "list"}), "(none)\n");
}

TEST_F(KvCommand, ACreateThatWasKilledLeavesTheNameFree) {
  Ok({"dataset", "create", "before"});
  Ok({"put", "before", "r", "c=v", "--timestamp", "5"});
  const Output killed =
      RunProgram({"/usr/bin/env", "KV_FAIL_POINT=create.made", KV_PROGRAM, "--data",
                  (dir_ / "store").string(), "dataset", "create", "events", "--max-versions", "5"});
  EXPECT_EQ(killed.code, 128 + SIGKILL);
  EXPECT_EQ(Ok({"dataset", "list"}).find("events"), std::string::npos);
  Ok({"dataset", "create", "events", "--max-versions", "6"});
  Ok({"put", "events", "r", "c=w", "--timestamp", "5"});
  EXPECT_EQ(Json::parse(Ok({"dataset", "show", "events", "--json"}))["max_versions"], 6);
  EXPECT_NE(Ok({"get", "before", "r"}).find("v\n"), std::string::npos);
  EXPECT_NE(Ok({"get", "events", "r"}).find("w\n"), std::string::npos);
}

TEST_F(KvCommand, ARecordOfAMigrationThatCannotBeReadIsListedAndFails) {
  Ok({"dataset", "create", "events"});
  std::filesystem::create_directories(dir_ / "store" / "migrations");
  File("store/migrations/events.json", "{");
  const Output table = Kv({"migrate", "list"});
  EXPECT_EQ(table.code, 1);
  EXPECT_NE(table.out.find("unreadable"), std::string::npos) << table.out;
  EXPECT_NE(table.err.find("DATA_LOSS"), std::string::npos) << table.err;
  const Output json = Kv({"--json", "migrate", "list"});
  EXPECT_EQ(json.code, 1);
  const Json listed = Json::parse(json.out);
  EXPECT_EQ(listed["ok"], false);
  EXPECT_EQ(listed["migrations"][0]["dataset"], "events");
  EXPECT_EQ(Json::parse(json.err)["error"]["code"], "DATA_LOSS");
  Fails({"migrate", "status", "events"}, "docs/runbook.md, 'The record of a migration cannot be read'");
  const Output repair = Kv({"migrate", "repair", "events", "--yes"});
  EXPECT_EQ(repair.code, 1);
  EXPECT_NE(repair.out.find("phase         unreadable"), std::string::npos) << repair.out;
  EXPECT_NE(repair.out.find("decide        put the record back"), std::string::npos) << repair.out;
  EXPECT_NE(repair.err.find("nothing was changed: a person must decide"), std::string::npos) << repair.err;
  Fails({"migrate", "repair", "another"}, "dataset: 'another' does not migrate");
  const Output share = Kv({"migrate", "create", "events", "--to", "mysql", "--shadow-reads", "1"});
  EXPECT_EQ(share.code, 2);
  EXPECT_NE(share.err.find("must be a share from 0% to 100%"), std::string::npos) << share.err;
}

TEST_F(KvCommand, ObjectsAndMappingsAreManaged) {
  Ok({"dataset", "create", "pins", "--shape", "objects", "--type", "7"});
  Ok({"dataset", "create", "boards", "--shape", "mappings"});
  const std::string id = "352324757225473";
  EXPECT_EQ(Ok({"object", "create", "pins", R"({"title":"a chair"})", "--shard", "5"}), id + "\n");
  EXPECT_EQ(
      Json::parse(Ok({"object", "update", "pins", id, R"({"colour":"red"})", "--json"}))["data"]["colour"],
      "red");
  Ok({"mapping", "add", "boards", "1", id, "--sequence", "9"});
  EXPECT_NE(Ok({"mapping", "list", "boards", "1"}).find(id), std::string::npos);
  EXPECT_EQ(Ok({"mapping", "count", "boards", "1"}), "1\n");
  EXPECT_EQ(Ok({"object", "scan", "pins"}), id + " " + Ok({"object", "get", "pins", id}));
  const std::string other = Ok({"object", "create", "pins", "{}", "--shard", "6"});
  const std::string page = Ok({"object", "scan", "pins", "--limit", "1"});
  EXPECT_EQ(page.find(other.substr(0, other.size() - 1)), std::string::npos);
  const size_t at = page.find("more: --marker ");
  ASSERT_NE(at, std::string::npos);
  const std::string marker = page.substr(at + 15, page.size() - at - 16);
  EXPECT_EQ(Ok({"object", "scan", "pins", "--marker", marker}), other.substr(0, other.size() - 1) + " {}\n");
  const std::string all = Ok({"object", "scan", "pins", "--all", "--json"});
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 3);
  EXPECT_EQ(Ok({"mapping", "scan", "boards", "--json"}),
            R"({"from":"1","sequence":9,"to":")" + id + "\"}\n{\"marker\":null}\n");
  Ok({"mapping", "remove", "boards", "1", id});
  EXPECT_EQ(Ok({"mapping", "scan", "boards", "--start-id", "0", "--end-id", "5"}), "(none)\n");
  Ok({"object", "delete", "pins", id});
  Fails({"object", "get", "pins", id}, "NOT_FOUND");
}

TEST_F(KvCommand, IdsAreTakenApartAndPutTogether) {
  EXPECT_EQ(Json::parse(Ok({"id", "decode", "241294492511762325", "--json"})),
            Json::parse(R"({"ok":true,"shard":3429,"type":1,"local":7075733})"));
  EXPECT_EQ(Ok({"id", "encode", "3429", "1", "7075733"}), "241294492511762325\n");
  EXPECT_EQ(Kv({"id", "decode", "7"}).code, 2);
  EXPECT_EQ(Kv({"id", "encode", "65536", "1", "1"}).code, 2);
}

TEST_F(KvCommand, ErrorsSayWhatToDoNext) {
  Fails({"get", "events", "r"}, "there is no store at");
  Fails({"get", "events", "r"}, "kv dataset create");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "store"));
  Ok({"dataset", "create", "d"});
  Fails({"get", "d", ""}, "row: a key has 1 to 1024 bytes");
  const Output json = Kv({"--json", "get", "none", "r"});
  EXPECT_EQ(json.code, 1);
  EXPECT_EQ(Json::parse(json.err)["error"]["code"], "NOT_FOUND");
}

TEST_F(KvCommand, WrongUsageIsExitCode2) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"nonsense"},
                                             {"get"},
                                             {"get", "d", "r", "--nonsense"},
                                             {"get", "d", "r", "--versions", "many"},
                                             {"completion", "fish"}}) {
    EXPECT_EQ(Kv(arguments).code, 2);
  }
}

TEST_F(KvCommand, HelpTeaches) {
  const Output help = RunProgram({KV_PROGRAM, "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find("Begin here:"), std::string::npos);
  for (const char* command : {"put", "get", "delete", "scan", "import", "export", "exec", "compact", "bench",
                              "completion", "dataset", "object", "mapping", "id", "shards"}) {
    const Output one = RunProgram({KV_PROGRAM, command, "--help"});
    EXPECT_EQ(one.code, 0) << command;
    EXPECT_NE(one.out.find("Usage: kv"), std::string::npos) << command;
  }
  EXPECT_EQ(RunProgram({KV_PROGRAM, "--version"}).code, 0);
}

TEST_F(KvCommand, BenchYcsbRunsEveryWorkload) {
  const std::string out = Ok({"--json", "bench", "ycsb", "--records", "200", "--seconds", "0.05", "--warm-up",
                              "0", "--rounds", "2", "--threads", "2"});
  const auto report = nlohmann::json::parse(out);
  std::string workloads;
  for (const auto& workload : report["workloads"]) {
    workloads += workload["workload"];
    EXPECT_GT(workload["ops_s"], 0);
    EXPECT_FALSE(workload["operations"].empty());
  }
  EXPECT_EQ(workloads, "ABCDEF");
  EXPECT_EQ(Ok({"dataset", "list"}).find("kv_bench_ycsb"), std::string::npos) << "it is dropped";
  EXPECT_NE(Kv({"bench", "ycsb", "--workloads", "AX"}).err.find("'X' is none of ABCDEF"), std::string::npos);
}

TEST_F(KvCommand, BenchChangesComparesAppendsAndTellsTheDelay) {
  const std::string out =
      Ok({"--json", "bench", "changes", "--seconds", "0.05", "--rounds", "2", "--threads", "2"});
  const auto report = nlohmann::json::parse(out);
  for (const char* side : {"plain", "kept", "followed"}) EXPECT_GT(report[side]["ops_s"], 0) << side;
  EXPECT_GT(report["kept_ratio"], 0);
  EXPECT_GT(report["delay_ms"]["count"], 0);
}

TEST_F(KvCommand, BenchSequencesComparesPeersThatSayTheSame) {
  const std::string out = Ok({"--json", "bench", "sequences", "--users", "100", "--events", "8000",
                              "--seconds", "0.05", "--warm-up", "0", "--rounds", "2", "--threads", "2",
                              "--peers", "rocksdb,redis", "--html", (dir_ / "report.html").string()});
  const auto report = nlohmann::json::parse(out);
  EXPECT_EQ(report["paths"].size(), 3u);
  for (const auto& path : report["paths"]) {
    std::string stores;
    for (const auto& side : path["sides"]) {
      stores += side["store"].get<std::string>() + " ";
      EXPECT_GT(side["ops_s"], 0);
      EXPECT_GT(side["ratio"], 0);
      EXPECT_FALSE(side["promise"].get<std::string>().empty());
    }
    EXPECT_EQ(stores, "kvstore rocksdb redis ");
  }
  std::ifstream page(dir_ / "report.html");
  const std::string html(std::istreambuf_iterator<char>(page), {});
  EXPECT_NE(html.find("appendfsync no"), std::string::npos);
  EXPECT_NE(Kv({"bench", "sequences", "--paths", "append,x"}).err.find("'x' is none of"), std::string::npos);
  EXPECT_NE(Kv({"bench", "sequences", "--peers", "mariadb"}).err.find("--config names no MySQL servers"),
            std::string::npos);
}

TEST_F(KvCommand, BenchTenantsFloodsAServerWithCallersOfItsOwn) {
  for (const bool elsewhere : {false, true}) {
    std::vector<std::string> command = {"--json",  "bench",    "tenants",   "--flood",   "8",
                                        "--limit", "1000000",  "--seconds", "0.1",       "--warm-up",
                                        "0",       "--rounds", "1",         "--threads", "1"};
    if (elsewhere) command.emplace_back("--elsewhere");
    const auto report = nlohmann::json::parse(Ok(command));
    EXPECT_EQ(report["callers"], 4);
    EXPECT_EQ(report["flood_threads"], 8);
    EXPECT_EQ(report["elsewhere"], elsewhere);
    EXPECT_GT(report["kept"], 0);
    ASSERT_EQ(report["tenants"].size(), 2u);
    for (const auto& tenant : report["tenants"]) {
      for (const char* const how : {"alone", "together"}) EXPECT_GT(tenant[how]["ops_s"], 0);
    }
  }
  EXPECT_NE(Kv({"bench", "tenants", "--limit", "1"}).err.find("--limit needs --flood"), std::string::npos);
  EXPECT_NE(Kv({"bench", "tenants", "--elsewhere"}).err.find("--elsewhere needs --flood"), std::string::npos);
}

TEST_F(KvCommand, BenchTenantsRunsEachAloneAndAllTogether) {
  const std::string out = Ok({"--json", "bench", "tenants", "--users", "100", "--events", "4000", "--rows",
                              "500", "--seconds", "0.05", "--warm-up", "0", "--rounds", "1", "--threads", "2",
                              "--html", (dir_ / "report.html").string()});
  const auto report = nlohmann::json::parse(out);
  std::string tenants;
  for (const auto& tenant : report["tenants"]) {
    tenants += tenant["tenant"].get<std::string>() + " ";
    for (const char* const how : {"alone", "together"}) {
      EXPECT_GT(tenant[how]["ops_s"], 0);
      EXPECT_FALSE(tenant[how]["operations"].empty());
    }
  }
  EXPECT_EQ(tenants, "feed graph import scan ");
  EXPECT_TRUE(std::filesystem::exists(dir_ / "report.html"));
  EXPECT_EQ(Ok({"dataset", "list"}).find("kv_bench"), std::string::npos) << "they are dropped";
  EXPECT_NE(Kv({"bench", "tenants", "--tenants", "crawler"}).err.find("crawler"), std::string::npos);
}

TEST_F(KvCommand, CompletionKnowsCommandsAndOptions) {
  const std::string script =
      Ok({"completion", "bash"}) +
      "COMP_WORDS=(kv dataset cr); COMP_CWORD=2; _kv; echo \"${COMPREPLY[@]}\"\n"
      "COMP_WORDS=(kv --json get --ver); COMP_CWORD=3; _kv; echo \"${COMPREPLY[@]}\"\n"
      "COMP_WORDS=(kv bench ten); COMP_CWORD=2; _kv; echo \"${COMPREPLY[@]}\"\n"
      "COMP_WORDS=(kv bench ycsb --rec); COMP_CWORD=3; _kv; echo \"${COMPREPLY[@]}\"\n"
      "COMP_WORDS=(kv bench completion); COMP_CWORD=2; _kv; echo \"${COMPREPLY[@]}\"\n";
  const Output output = RunProgram({"bash", "-c", script});
  EXPECT_EQ(output.out, "create\n--versions\ntenants\n--records\n\n") << output.err;
}

TEST_F(KvCommand, AStoreThatIsOpenNamesItsHolder) {
  Ok({"dataset", "create", "d"});
  std::array<int, 2> input{};
  ASSERT_EQ(::pipe(input.data()), 0);
  std::array<int, 2> answers{};
  ASSERT_EQ(::pipe(answers.data()), 0);
  const pid_t holder = Fork([&] {
    ::dup2(input[0], STDIN_FILENO);
    ::dup2(answers[1], STDOUT_FILENO);
    ::close(input[1]);
    ::execl(KV_PROGRAM, KV_PROGRAM, "--data", (dir_ / "store").c_str(), "exec", nullptr);
    return 127;
  });
  const std::string request = "{\"op\":\"list_datasets\"}\n";
  ASSERT_EQ(::write(input[1], request.data(), request.size()), static_cast<ssize_t>(request.size()));
  // The process answers before it waits for more input, so it holds the store now.
  char c = 0;
  ASSERT_EQ(::read(answers[0], &c, 1), 1);
  Fails({"get", "d", "r"}, "is open in process " + std::to_string(holder));
  Fails({"get", "d", "r"}, "stop that process");
  for (const int end : {input[0], input[1], answers[0], answers[1]}) ::close(end);
  Wait(holder);
  EXPECT_EQ(Ok({"get", "d", "r"}), "(none)\n");
}

}  // namespace
}  // namespace kvstore::testing
