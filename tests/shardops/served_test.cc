#include "tests/server/served.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "client/caller.h"
#include "client/client.h"
#include "kvstore_api/call_scope.h"
#include "operate/alarms.h"
#include "operate/journal.h"
#include "operate/membership.h"
#include "operate/pair_records.h"
#include "server/call/access.h"
#include "shardmap/nodes.h"
#include "shardops/fleet_commands.h"
#include "shardops/map_history.h"
#include "tests/shardops/move_fixture.h"
#include "tests/support/kv_server.h"
#include "tests/support/processes.h"

/// Operators work through a server: what a command prints and does there is what it prints and does by a
/// configuration. Who may do it, and what the log has of it, is in tests/server/operate_shards_test.cc.
namespace kvstore::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class ServedShardsTest : public MoveTest {
 protected:
  ServedShardsTest() {
    WriteTokens(dir_ / "tokens.json");
    first_.WriteConfig(dir_ / "kv.json");
    Json config = Json::parse(std::ifstream(dir_ / "kv.json"));
    config["server"]["tokens"] = (dir_ / "tokens.json").string();
    std::ofstream(dir_ / "kv.json") << config;
    config["backends"]["mysql"].erase("operator");
    std::ofstream(dir_ / "no-operator.json") << config;
  }

  static void WriteTokens(const std::filesystem::path& file) {
    const auto entry = [](const std::string& name, const std::string& right) {
      return Json{
          {"name", name}, {"sha256", server::TokenDigest("token-" + name)}, {"rights", {{"*", right}}}};
    };
    std::ofstream(file) << Json{{"tokens", {entry("ops", "admin"), entry("web", "write")}}};
  }
  std::unique_ptr<KvServer> Serve(const std::string& config = "kv.json") const {
    return std::make_unique<KvServer>(KV_PROGRAM, Words{"--config", (dir_ / config).string()});
  }
  /// Runs `kv shards`, or commands of another group, through a server, as the caller of this name.
  static Output Through(const KvServer& server, const Words& words, const std::string& name = "ops",
                        const std::string& group = "shards") {
    Words command = {"env", "KV_TOKEN=token-" + name, KV_PROGRAM, "--server", server.address(), group};
    command.insert(command.end(), words.begin(), words.end());
    return RunProgram(command);
  }
  /// Runs the same by the configuration.
  Output Here(const Words& words, const std::string& group = "shards") const {
    Words command = {KV_PROGRAM, "--config", (dir_ / "kv.json").string(), group};
    command.insert(command.end(), words.begin(), words.end());
    return RunProgram(command);
  }
  static std::string Text(const shardops::Pair& pair) {
    return pair.master.ToString() + "," + pair.slave.ToString();
  }
  std::string File(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ / name) << text;
    return (dir_ / name).string();
  }
  std::string Node(const std::string& path) {
    const auto node = first_.fleet().zookeeper.Get(first_.fleet().root + path, /*watch=*/false);
    EXPECT_OK(node) << path;
    return node.ok() ? node->data : "";
  }
  /// Returns what commands may change: maps and their history, moves, operations, databases and roles.
  std::string State() {
    std::string state = Node("/shards/id") + Node("/shards/mod");
    shardops::FleetOperator& fleet = first_.fleet();
    for (const ShardSpace space : {ShardSpace::kId, ShardSpace::kMod}) {
      state += std::to_string(shardops::ReadHistory(fleet.zookeeper, fleet.root, space)->size()) + "\n";
    }
    state += std::to_string(shardops::LoadMoves(fleet)->known.size()) + "\n";
    state += std::to_string(fleet.ledger->List()->size()) + "\n";
    for (MariaDbServer* server : {&first_.a(), &first_.b(), &second_.a(), &second_.b()}) {
      state += server->Run("SHOW DATABASES") + server->Run("SELECT @@read_only");
    }
    return state;
  }
  absl::Status Put(const std::string& row) {
    const CellWrite cell{"c", "v", std::nullopt};
    return store_->PutRow("events", row, {&cell, 1}, {}).status();
  }
};

TEST_F(ServedShardsTest, WhatKvOperateDoesIsShownThroughAServer) {
  shardops::FleetOperator& fleet = first_.fleet();
  ASSERT_OK(
      operate::PairRecords(fleet.zookeeper, fleet.root)
          .Save(first_.hosts(), {.on = true, .by = "ann@ops1, process 4711", .since_ms = 1'700'000'000'000}));
  operate::Membership leader(fleet.zookeeper, fleet.root, "ben@ops2, process 31");
  ASSERT_OK(leader.Meet({}));
  const auto meeting = leader.Meet({});
  ASSERT_OK(meeting);
  ASSERT_TRUE(meeting->leads);
  operate::Alarms alarms([](const operate::Event&) {});
  alarms.Set("disks", {{"MySQL001A", "its disk is full to 91 %", "runbook.md#a-full-disk"}},
             std::chrono::milliseconds(0));
  ASSERT_OK(alarms.Publish(fleet.zookeeper, fleet.root, meeting->still_leads));
  operate::Journal journal(fleet.zookeeper, fleet.root, "ben@ops2, process 31", {});
  journal.Add({.kind = "lead", .subject = "kv operate", .text = "leads from now on"});
  ASSERT_OK(journal.Publish());

  const auto server = Serve();
  for (const Words& command :
       {Words{"status"}, Words{"status", "--json"}, Words{"journal"}, Words{"journal", "--json"}}) {
    SCOPED_TRACE(::testing::PrintToString(command));
    const Output through = Through(*server, command, "ops", "operate");
    const Output here = Here(command, "operate");
    EXPECT_EQ(through.code, command[0] == "status" ? 1 : 0) << "an alarm";
    EXPECT_EQ(through.code, here.code);
    EXPECT_EQ(through.out, here.out);
    EXPECT_EQ(through.err, here.err);
    EXPECT_THAT(through.out, HasSubstr("ben@ops2, process 31"));
  }
  const std::string status = Through(*server, {"status"}, "ops", "operate").out;
  EXPECT_THAT(status, ContainsRegex("ben@ops2, process 31 +leads"));
  EXPECT_THAT(status, ContainsRegex(" on +2023-11-14 22:13:20 +ann@ops1, process 4711"));
  EXPECT_THAT(status, HasSubstr("its disk is full to 91 % (docs/runbook.md#a-full-disk)"));
  EXPECT_THAT(Through(*server, {"status"}, "web", "operate").err, HasSubstr("PERMISSION_DENIED"));
  // Commands that act on the fleet do not go through a server.
  for (const Words& command : {Words{"on", "--all"}, Words{"off", "--all"}, Words{"--dry-run"}}) {
    const Output refused = Through(*server, command, "ops", "operate");
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr("this command works on the fleet's hosts and ZooKeeper itself"));
  }
  leader.Leave();
  EXPECT_THAT(Through(*server, {"status"}, "ops", "operate").err,
              HasSubstr("no process of kv operate leads"));
}

/// Removes from the answer of `status --json` what differs from one moment to the next.
std::string Steady(const std::string& status) {
  Json json = Json::parse(status);
  for (Json& host : json["hosts"]) {
    for (const char* const field : {"bytes", "clock_ahead_ms", "connections"}) host.erase(field);
  }
  return json.dump();
}

TEST_F(ServedShardsTest, CommandsPrintTheSameAndNothingIsChangedByThemOrByStrangers) {
  const auto server = Serve();
  const std::string none = "127.0.0.1:1";
  const std::string other =
      File("other.json", fmt::format(R"([{{"range": [0, 7], "master": "{}", "slave": "{}"}}])",
                                     second_.host_a().ToString(), second_.host_b().ToString()));
  const std::string same = File("same.json", Node("/shards/id"));
  const std::string b = first_.host_b().ToString();
  // An open saves the maps that it finds in the history, also if it is refused then.
  ASSERT_OK(shardops::PrepareHistory(first_.fleet().zookeeper, first_.fleet().root));
  EXPECT_EQ(Steady(Through(*server, {"status", "--json"}).out), Steady(Here({"status", "--json"}).out));
  const std::string before = State();
  const std::vector<Words> commands = {
      {"check"},
      {"check", "--json"},
      {"move", "status"},
      {"move", "status", "--json"},
      {"operations"},
      {"operations", "--json"},
      {"weight"},
      {"weight", "--json"},
      {"history"},
      // Each dry run.
      {"set", same, "--dry-run"},
      {"set", same, "--dry-run", "--json"},
      {"set", other, "--dry-run"},
      {"set", other, "--dry-run", "--unchecked"},
      {"undo", "--dry-run"},
      {"open", "--range", "8-15", "--master", first_.host_a().ToString(), "--slave", b, "--dry-run"},
      {"open", "--range", "8-15", "--master", none, "--slave", b, "--dry-run"},
      {"promote", b, "--dry-run"},
      {"promote", b, "--dry-run", "--json"},
      {"move", "--mod", "--range", "0-3", "--to", Text(second_.hosts()), "--dry-run"},
      {"move", "--mod", "--range", "0-3", "--to", Text(second_.hosts()), "--dry-run", "--json"},
      {"replace-slave", b, "--dry-run"},
      // Commands that are refused.
      {"set", other},
      {"set", other, "--yes"},
      {"set", other, "--yes", "--json"},
      {"promote", none},
      {"promote", b, "--emergency"},
      {"fence", none},
      {"open", "--range", "4-11", "--master", first_.host_a().ToString(), "--slave", b},
      {"move", "--mod", "--range", "0-99", "--to", Text(second_.hosts())},
      {"move", "--range", "0-7", "--to", Text(first_.hosts())},
      {"move", "cancel", "--mod", "--range", "0-3"},
      {"move", "cancel", "--mod", "--range", "0-3", "--from", Text(first_.hosts())},
      {"move", "finish", "--mod", "--range", "0-3"},
      {"replace-slave", first_.host_a().ToString()},
      {"release", "nosuch"},
      // Wrong usage.
      {"move", "--range", "5", "--to", "A,B"},
      {"promote", "a host"},
      {"fence", none, "--dry-run"},
  };
  std::set<int> codes;
  for (const Words& command : commands) {
    SCOPED_TRACE(::testing::PrintToString(command));
    const Output through = Through(*server, command);
    const Output here = Here(command);
    EXPECT_EQ(through.code, here.code);
    EXPECT_EQ(through.out, here.out);
    EXPECT_EQ(through.err, here.err);
    codes.insert(through.code);
  }
  EXPECT_EQ(codes, (std::set<int>{0, 1, 2}));
  for (const std::string name : {"web", "stranger"}) {
    for (const Words& command : {Words{"promote", b}, Words{"fence", b}, Words{"status"}}) {
      const Output refused = Through(*server, command, name);
      EXPECT_EQ(refused.code, 1);
      EXPECT_EQ(refused.out, "");
      EXPECT_THAT(refused.err, HasSubstr(name == "web" ? "PERMISSION_DENIED" : "UNAUTHENTICATED"));
    }
  }
  // A server whose configuration has no operator's login refuses these.
  const auto without = Serve("no-operator.json");
  for (const Words& command : {Words{"promote", b}, Words{"status"}, Words{"init"}, Words{"operations"}}) {
    const Output refused = Through(*without, command);
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, HasSubstr("FAILED_PRECONDITION: this server does not operate its fleet"));
    EXPECT_THAT(refused.err, HasSubstr("config: mysql.operator is missing"));
    EXPECT_THAT(refused.err, HasSubstr("Set mysql.operator and mysql.replication in the configuration"));
  }
  EXPECT_EQ(State(), before);

  // A note with fields of other types ends a command, and not the server that serves data, too.
  const auto note = [&](const std::string& text) {
    ZooKeeper& zookeeper = first_.fleet().zookeeper;
    const std::string path = HostPath(first_.fleet().root, first_.host_b());
    zookeeper.Delete(path).IgnoreError();
    EXPECT_OK(zookeeper.Create(path, text));
  };
  note(R"({"copy": {"from": 7}})");
  EXPECT_THAT(Through(*server, {"status"}).out, HasSubstr("a copy to it from its master was begun"));
  note(R"({"promoted_from": 7})");
  const Output damaged = Through(*server, {"promote", first_.host_a().ToString()});
  EXPECT_EQ(damaged.code, 1);
  EXPECT_THAT(damaged.err, HasSubstr("DATA_LOSS: a note about a host (/kvstore/hosts in ZooKeeper)"));
  EXPECT_EQ(Through(*server, {"move", "status"}).code, 0);
}

TEST_F(ServedShardsTest, ShardsMoveMastersAreReplacedAndMapsAreEdited) {
  const auto server = Serve();
  ASSERT_OK(Put("before"));
  // A move, as the program shows it.
  const Words range = {"--mod", "--range", "0-3"};
  const auto with_range = [&](Words words, const Words& more = {}) {
    words.insert(words.end(), range.begin(), range.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const Output moved =
      Through(*server, with_range({"move"}, {"--to", Text(second_.hosts()), "--hold-writes"}));
  EXPECT_EQ(moved.code, 0) << moved.err;
  EXPECT_THAT(moved.out, ContainsRegex("copying about [0-9]+ MiB\n"));
  EXPECT_THAT(moved.out, HasSubstr("the copy is the same\n"));
  EXPECT_THAT(moved.out, HasSubstr("shards mod 0-3 have moved; "));
  EXPECT_EQ(HomeOf(kRows), second_.hosts());
  EXPECT_THAT(Through(*server, {"move", "status"}).out,
              ContainsRegex("mod 0-3 .* moved +finish, or move back"));
  EXPECT_EQ(Through(*server, with_range({"move"}, {"--to", Text(second_.hosts())})).out,
            "shards mod 0-3 are there\n");
  const Output finished = Through(*server, with_range({"move", "finish"}));
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("the old tables of shards mod 0-3 are gone\n"));
  EXPECT_THAT(Through(*server, {"move", "status"}).out, HasSubstr("no shards are moving"));
  ASSERT_OK(Put("after"));

  // Another one, whose progress a program looks at.
  client::Client ops(client::Caller::Open(server->address(), {.token = "token-ops"}).value());
  std::set<std::string> steps;
  uint64_t copied = 0;
  const auto answer =
      ops.Operate({{"command", "move"},
                   {"first", uint64_t{kIds.first}},
                   {"last", uint64_t{kIds.last}},
                   {"to", Text(second_.hosts())},
                   {"hold_writes", true}},
                  {.line = nullptr, .progress = [&](std::string_view step, uint64_t done, uint64_t total) {
                     EXPECT_TRUE(total == 0 || done <= total) << step;
                     if (step == "copy") copied = done;
                     steps.emplace(step);
                     return true;
                   }});
  ASSERT_OK(answer);
  EXPECT_TRUE(steps.contains("copy") && steps.contains("compare")) << ::testing::PrintToString(steps);
  EXPECT_GT(copied, 0u);
  EXPECT_EQ(answer->value("switches", uint64_t{0}), 1u);
  EXPECT_EQ(HomeOf(kIds), second_.hosts());

  // A promotion, there and back. The history names who did it, and by which server.
  const std::string a = first_.host_a().ToString();
  const std::string b = first_.host_b().ToString();
  const Output promoted = Through(*server, {"promote", b});
  EXPECT_EQ(promoted.code, 0) << promoted.err;
  EXPECT_THAT(promoted.out, HasSubstr(fmt::format("{} is the master, {} follows it\n", b, a)));
  EXPECT_EQ(first_.Master(), first_.host_b());
  const Json history = Json::parse(Through(*server, {"history", "--json"}).out);
  EXPECT_THAT(history["maps"][0].value("who", ""),
              ContainsRegex("^ops from ipv4:127.0.0.1:[0-9]+, by the server .+, process [0-9]+$"));
  EXPECT_EQ(Through(*server, {"promote", a}).code, 0);
  EXPECT_EQ(first_.Master(), first_.host_a());

  // More shards, their weight, and an edit that is undone.
  const Output opened = Through(*server, {"open", "--range", "8-15", "--master", a, "--slave", b});
  EXPECT_EQ(opened.code, 0) << opened.err;
  EXPECT_THAT(opened.out, HasSubstr("shards 8-15 are open on " + a));
  EXPECT_EQ(Through(*server, {"weight", "--range", "8-15", "3"}).out, "8-15: 3\nall other shards: 1\n");
  EXPECT_THAT(Node("/shards/weights"), HasSubstr("3"));
  EXPECT_THAT(Through(*server, {"init"}).out, HasSubstr(" shards are there; "));
  const std::string map = Node("/shards/id");
  Json fewer = Json::parse(map);
  fewer.erase(fewer.size() - 1);
  const Output set = Through(*server, {"set", File("fewer.json", fewer.dump()), "--yes", "--unchecked"});
  EXPECT_EQ(set.code, 0) << set.err;
  EXPECT_THAT(set.out, HasSubstr("shards 8..15: closed"));
  EXPECT_EQ(Json::parse(Node("/shards/id")), fewer);
  EXPECT_EQ(Through(*server, {"undo", "--yes", "--unchecked"}).code, 0);
  EXPECT_EQ(Json::parse(Node("/shards/id")), Json::parse(map));

  // A slave that is rebuilt, and one that takes writes by mistake.
  const Output replaced = Through(*server, {"replace-slave", b, "--discard"});
  EXPECT_EQ(replaced.code, 0) << replaced.err;
  first_.b().Run("SET GLOBAL read_only = OFF");
  EXPECT_THAT(Through(*server, {"fence", b}).out, HasSubstr(b + " takes no writes; "));
  EXPECT_EQ(first_.b().Run("SELECT @@read_only"), "1\n");
  ASSERT_OK(Put("at the end"));
}

TEST_F(ServedShardsTest, AMoveWhoseServerIsKilledGoesOnThroughTheNextOne) {
  const Words move = {"move", "--mod", "--range", "0-3", "--to", Text(second_.hosts()), "--hold-writes"};
  {
    const KvServer killed("/bin/sh", {"-c", "KV_FAIL_POINT=move.copied exec \"$0\" \"$@\"", KV_PROGRAM,
                                      "--config", (dir_ / "kv.json").string()});
    const Output lost = Through(killed, move);
    EXPECT_EQ(lost.code, 1) << lost.out;
    EXPECT_THAT(lost.err, HasSubstr("UNAVAILABLE"));
    EXPECT_THAT(lost.err,
                HasSubstr("the command may have done all, a part or nothing: kv shards operations"));
  }
  const auto server = Serve();
  EXPECT_THAT(Through(*server, {"move", "status"}).out,
              ContainsRegex("mod 0-3 .* copying +move again to go on, or cancel"));
  EXPECT_THAT(Through(*server, {"operations"}).out,
              ContainsRegex("move shards mod 0-3 +ops from ipv4:127.0.0.1:.* lasts"));
  const Output again = Through(*server, move);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(HomeOf(kRows), second_.hosts());
  ASSERT_OK(Put("after"));
}

/// The operations of a server in this process, in which a test looks at an operation that is under way.
class WatchedOperations : public ShardOperations {
 public:
  explicit WatchedOperations(shardops::FleetOptions options) : operations_(std::move(options)) {}

  absl::StatusOr<Json> Operate(const Json& command, const ShardEvents& events) override {
    progress_ = events.progress;
    auto answer = operations_.Operate(command, events);
    const MutexLock lock(mutex_);
    ended_.push_back(answer.status());
    return answer;
  }
  /// Whether the operation that is under way has been told to stop. For its thread.
  bool MustStop() const { return !progress_("test", 0, 0); }
  /// How the operations have ended.
  std::vector<absl::Status> ended() {
    const MutexLock lock(mutex_);
    return ended_;
  }

 private:
  shardops::FleetCommands operations_;
  std::function<bool(std::string_view, uint64_t, uint64_t)> progress_;
  Mutex mutex_;
  std::vector<absl::Status> ended_ ABSL_GUARDED_BY(mutex_);
};

/// Clients that leave in the middle of a move.
class LostClientTest : public ServedShardsTest {
 protected:
  LostClientTest() {
    ServerOptions options = TestServerOptions();
    options.tokens = dir_ / "tokens.json";
    shardops::FleetOperator& fleet = first_.fleet();
    operations_ = std::make_unique<WatchedOperations>(
        shardops::FleetOptions{.zookeeper = {.servers = first_.zookeeper().address()},
                               .root = fleet.root,
                               .has_operator = true,
                               .access = fleet.access});
    served_ = std::make_unique<Served>(options, ServerParts{.shard_operations = operations_.get()});
  }

  absl::Status MoveThrough() {
    client::Client ops(client::Caller::Open(served_->address(), {.token = "token-ops"}).value());
    return ops
        .Operate({{"command", "move"},
                  {"mod", true},
                  {"first", uint64_t{kRows.first}},
                  {"last", uint64_t{kRows.last}},
                  {"to", Text(second_.hosts())},
                  {"hold_writes", true}},
                 {})
        .status();
  }
  /// Begins a move whose client leaves when it has reached this point; returns how the move ends at the
  /// server.
  absl::Status LeaveAt(std::string_view point) {
    std::atomic<bool> left{false};
    std::atomic<bool> noticed{false};
    SetFailPointHook([&](std::string_view name) {
      if (name != point || left.exchange(true)) return;
      // The move is not let go on before its server knows.
      noticed = Eventually([&] { return operations_->MustStop(); });
    });
    {
      const CallScope scope(CallLimits{.cancelled = &left});
      EXPECT_TRUE(absl::IsCancelled(MoveThrough()));
    }
    EXPECT_TRUE(Eventually([&] { return operations_->ended().size() == 1; }));
    SetFailPointHook(nullptr);
    EXPECT_TRUE(noticed);
    return operations_->ended().at(0);
  }
  shardops::MoveState State() {
    const auto moves = shardops::LoadMoves(first_.fleet());
    EXPECT_OK(moves);
    EXPECT_EQ(moves->known.size(), 1u);
    return moves->known.at(0).state;
  }
  void ExpectUsable() {
    for (int row = 0; row < 40; ++row) ASSERT_OK(Put(std::to_string(row)));
  }

  std::unique_ptr<WatchedOperations> operations_;
  std::unique_ptr<Served> served_;
};

TEST_F(LostClientTest, TheMoveStopsWhereItCanGoOn) {
  EXPECT_THAT(LeaveAt("move.following"),
              FailsWith(absl::StatusCode::kCancelled, "was stopped: run the command again to go on"));
  EXPECT_EQ(State(), shardops::MoveState::kFollowing);
  EXPECT_EQ(HomeOf(kRows), first_.hosts());
  ExpectUsable();
  EXPECT_OK(MoveThrough());
  EXPECT_EQ(State(), shardops::MoveState::kMoved);
  EXPECT_EQ(HomeOf(kRows), second_.hosts());
  ExpectUsable();
}

TEST_F(LostClientTest, WhileShardsAreOutOfUseTheMoveGoesOnUntilTheyAreUsable) {
  EXPECT_THAT(LeaveAt("move.frozen"),
              FailsWith(absl::StatusCode::kCancelled, "was stopped: run the command again to go on"));
  EXPECT_EQ(HomeOf(kRows), second_.hosts()) << "they were switched, and then it stopped";
  EXPECT_EQ(State(), shardops::MoveState::kSwitching);
  ExpectUsable();
  EXPECT_OK(MoveThrough());
  EXPECT_EQ(State(), shardops::MoveState::kMoved);
  ExpectUsable();
}

}  // namespace
}  // namespace kvstore::testing
