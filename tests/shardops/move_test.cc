#include "shardops/move.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/fail_point.h"
#include "kvstore_api/call_scope.h"
#include "shardmap/map_source.h"
#include "shardops/freeze.h"
#include "shardops/status.h"
#include "tests/migration/world.h"
#include "tests/shardops/pair.h"
#include "tests/support/eventually.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

/// Shards move from one pair of servers to another while clients use them; what they were told is checked.
namespace kvstore::testing {
namespace {

using absl::StatusCode;
using shardops::CancelMove;
using shardops::FinishMove;
using shardops::LoadMoves;
using shardops::MoveRange;
using shardops::MoveShards;
using shardops::MoveState;
using shardops::Pair;

constexpr MoveRange kRows{.mod = true, .first = 0, .last = 3};
constexpr MoveRange kIds{.mod = false, .first = 4, .last = 7};

/// As if the process had died there.
struct Died {};

TEST(MovePatterns, CoverTheRangeAndNothingElse) {
  EXPECT_EQ(shardops::Patterns(false, 7, 7), "db00007.%");
  EXPECT_EQ(shardops::Patterns(false, 8, 21), "db00008.%,db00009.%,db0001_.%,db00020.%,db00021.%");
  EXPECT_EQ(shardops::Patterns(true, 0, 1099), "mod00___.%,mod010__.%");
}

/// Creates objects, each with a mapping to itself, and remembers them.
class Creator {
 public:
  explicit Creator(KVStore& store) : store_(store), thread_([this] { Run(); }) {}
  ~Creator() { Stop(); }
  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  /// After Stop: every one is there once.
  void Check() {
    EXPECT_EQ(errors_, 0u) << last_error_;
    EXPECT_EQ(std::set<uint64_t>(made_.begin(), made_.end()).size(), made_.size());
    for (const uint64_t id : made_) {
      EXPECT_OK(store_.GetObject("pins", id, {}).status());
      const auto count = store_.CountMapping("links", id);
      ASSERT_OK(count.status());
      EXPECT_EQ(*count, 1u);
    }
    std::printf("%zu objects were made\n", made_.size());
  }

 private:
  void Run() {
    while (!stop_) {
      const auto id = store_.CreateObject("pins", R"({"a": 1})", {});
      if (!id.ok()) {
        Fail(id.status());
        continue;
      }
      made_.push_back(*id);
      if (auto status = store_.AddMapping("links", *id, *id, 1); !status.ok()) Fail(status);
    }
  }
  void Fail(const absl::Status& status) {
    ++errors_;
    last_error_ = std::string(status.message());
  }

  KVStore& store_;
  std::atomic<bool> stop_{false};
  uint64_t errors_ = 0;
  std::string last_error_;
  std::vector<uint64_t> made_;
  std::thread thread_;
};

class MoveTest : public ::testing::Test {
 protected:
  MoveTest() : store_(first_.OpenStore(dir_.path())) {
    EXPECT_OK(store_->CreateDataset({.name = "events"}));
    EXPECT_OK(store_->CreateDataset({.name = "pins", .shape = Shape::kObjects, .type = 7}));
    EXPECT_OK(store_->CreateDataset({.name = "links", .shape = Shape::kMappings}));
  }
  ~MoveTest() override { SetFailPointHook(nullptr); }

  absl::Status Move(const MoveRange& range, const Pair& to, const shardops::MoveOptions& options = {}) {
    return MoveShards(first_.fleet(), range, to, options).status();
  }
  /// On however slow a disk.
  absl::Status MoveThere(const MoveRange& range) {
    return Move(range, second_.hosts(), {.hold_writes = true});
  }
  Pair HomeOf(const MoveRange& range) {
    return *shardops::Maps::Load(first_.fleet().zookeeper, first_.fleet().root)
                ->PairOf(range.mod, range.first);
  }
  /// Databases of shards on a server, also those that have moved away.
  static std::string Databases(const MariaDbServer& server, const std::string& like) {
    return server.Run("SHOW DATABASES LIKE '" + like + "'");
  }
  void ExpectInOrder() {
    // Slaves apply what their masters have just been told.
    EXPECT_TRUE(Eventually([&] {
      const auto found = shardops::Check(first_.fleet(), *store_->ListDatasets());
      return found.ok() && found->empty();
    })) << shardops::Check(first_.fleet(), *store_->ListDatasets())->front();
  }

  const TempDir dir_;
  PairFleet first_;
  ServerPair second_{2};
  std::unique_ptr<Router> store_;
};

TEST_F(MoveTest, HalfOfAPairUnderLoadThereAndBack) {
  History history(Clients::kKeys);
  Clients clients(*store_, "events", history, 4, Seed("move"));
  Creator creator(*store_);
  clients.Work(100);
  for (const MoveRange& range : {kRows, kIds}) {
    const auto moved = MoveShards(first_.fleet(), range, second_.hosts(), {.hold_writes = true});
    ASSERT_OK(moved.status());
    EXPECT_EQ(HomeOf(range), second_.hosts());
    std::printf("shards %s could not be used for %d ms\n", range.ToString().c_str(),
                static_cast<int>(moved->max_pause_ms));
    RecordProperty("pause_ms", static_cast<int>(moved->max_pause_ms));
    clients.Work(100);
    EXPECT_OK(MoveThere(range)) << "given again";
  }
  // Back, with what was written there.
  EXPECT_OK(Move(kRows, first_.hosts(), {.hold_writes = true}));
  clients.Work(100);
  EXPECT_EQ(Databases(second_.a(), "mod%moved"),
            "mod00000_moved\nmod00001_moved\nmod00002_moved\nmod00003_moved\n");
  for (const MoveRange& range : {kRows, kIds}) EXPECT_OK(FinishMove(first_.fleet(), range));
  clients.Work(100);
  clients.Stop();
  creator.Stop();
  EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
  EXPECT_EQ(history.Check(), std::nullopt);
  creator.Check();
  for (MariaDbServer* server : {&first_.a(), &first_.b(), &second_.a(), &second_.b()}) {
    EXPECT_TRUE(Eventually([&] { return Databases(*server, "%moved").empty(); }));
    const bool slave = server == &first_.b() || server == &second_.b();
    EXPECT_EQ(server->Run("SELECT @@slave_parallel_threads"), slave ? "8\n" : "0\n") << "as it was";
  }
  ExpectInOrder();
}

TEST_F(MoveTest, StoppedAtAnyStepItGoesOnOrIsCancelled) {
  History history(Clients::kKeys);
  Clients clients(*store_, "events", history, 4, Seed("stopped"));
  for (const bool cancelled : {false, true}) {
    for (const char* const point : {"move.begin", "move.copied", "move.following", "move.verified",
                                    "move.frozen", "move.applied", "move.published", "move.released"}) {
      SCOPED_TRACE(fmt::format("{} {}", point, cancelled ? "cancelled" : "on"));
      SetFailPointHook([&](std::string_view name) {
        if (name == point) throw Died();
      });
      EXPECT_THROW(EXPECT_OK(MoveThere(kRows)), Died);
      SetFailPointHook(nullptr);
      const bool published = HomeOf(kRows) == second_.hosts();
      if (cancelled && point != std::string("move.released")) {
        ASSERT_OK(CancelMove(first_.fleet(), kRows));
        EXPECT_EQ(HomeOf(kRows), published ? second_.hosts() : first_.hosts());
      } else {
        ASSERT_OK(MoveThere(kRows));
      }
      clients.Work(20);
      if (HomeOf(kRows) == second_.hosts()) {
        ASSERT_OK(FinishMove(first_.fleet(), kRows));
        ASSERT_OK(Move(kRows, first_.hosts()));
        ASSERT_OK(FinishMove(first_.fleet(), kRows));
      }
      clients.Work(20);
      EXPECT_EQ(Databases(second_.a(), "mod%"), "");
      ExpectInOrder();
    }
  }
  clients.Stop();
  EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
  EXPECT_EQ(history.Check(), std::nullopt);
}

TEST_F(MoveTest, WhatHasMovedStaysWhenTheRestIsCancelled) {
  // So many tables that the shards do not switch together.
  for (int i = 0; i < 11; ++i) EXPECT_OK(store_->CreateDataset({.name = "more" + std::to_string(i)}));
  constexpr MoveRange kAll{.mod = true, .first = 0, .last = 7};
  History history(Clients::kKeys);
  Clients clients(*store_, "events", history, 2, Seed("in part"));
  const auto die_once = [&] {
    SetFailPointHook([&](std::string_view name) {
      if (name == "move.published") throw Died();
    });
    EXPECT_THROW(EXPECT_OK(MoveThere(kAll)), Died);
    SetFailPointHook(nullptr);
    EXPECT_EQ(HomeOf(kAll), second_.hosts());
    EXPECT_EQ(HomeOf({true, 7, 7}), first_.hosts());
    clients.Work(20);
  };
  die_once();
  ASSERT_OK(CancelMove(first_.fleet(), kAll));
  clients.Work(20);
  const auto moves = LoadMoves(first_.fleet());
  ASSERT_EQ(moves->size(), 1u);
  const MoveRange moved = moves->front().range;
  EXPECT_LT(moved.last, 7u);
  ExpectInOrder();
  EXPECT_THAT(MoveThere(kAll), FailsWith(StatusCode::kFailedPrecondition, "move each part by itself"));
  ASSERT_OK(FinishMove(first_.fleet(), moved));
  ASSERT_OK(Move(moved, first_.hosts()));
  ASSERT_OK(FinishMove(first_.fleet(), moved));
  die_once();
  ASSERT_OK(MoveThere(kAll));
  EXPECT_EQ(HomeOf({true, 7, 7}), second_.hosts());
  clients.Work(20);
  clients.Stop();
  EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
  EXPECT_EQ(history.Check(), std::nullopt);
  ExpectInOrder();
}

TEST_F(MoveTest, CancelledAfterTheNewMasterWasReplacedItRemovesNothingThatIsUsed) {
  History history(Clients::kKeys);
  Clients clients(*store_, "events", history, 2, Seed("replaced"));
  clients.Work(20);
  SetFailPointHook([&](std::string_view name) {
    if (name == "move.published") throw Died();
  });
  EXPECT_THROW(EXPECT_OK(MoveThere(kRows)), Died);
  SetFailPointHook(nullptr);
  clients.Work(20);
  ASSERT_OK(shardops::Look(first_.fleet()));
  second_.a().Kill();
  ASSERT_OK(Promote(first_.fleet(), second_.host_b(), {.emergency = true}).status());
  clients.Work(20);
  ASSERT_OK(CancelMove(first_.fleet(), kRows));
  EXPECT_EQ(HomeOf(kRows).master, second_.host_b());
  EXPECT_EQ(LoadMoves(first_.fleet())->front().state, MoveState::kMoved);
  clients.Work(20);
  clients.Stop();
  EXPECT_EQ(history.Check(), std::nullopt);
}

TEST_F(MoveTest, AHostThatIsMadeASlaveHasNothingOfAChannelLeft) {
  SetFailPointHook([&](std::string_view name) {
    if (name == "move.following") throw Died();
  });
  EXPECT_THROW(EXPECT_OK(MoveThere(kRows)), Died);
  SetFailPointHook(nullptr);
  const char* const settings = "SELECT @@slave_parallel_threads, @@replicate_events_marked_for_skip";
  EXPECT_EQ(second_.a().Run(settings), "8\tFILTER_ON_SLAVE\n");
  const auto master = shardops::HostAdmin::Open(second_.host_a(), first_.fleet().access);
  ASSERT_OK((*master)->Follow(second_.host_b(), first_.fleet().access));
  EXPECT_EQ(second_.a().Run(settings), "0\tREPLICATE\n");
}

TEST_F(MoveTest, InitAtEachStepMakesNothingThatIsInTheWay) {
  // A dataset whose table has another name is moved like others.
  const DatasetSpec numbered{
      .name = "again", .backend = "mysql", .incarnation = 5, .table = NumberedTable("again", 2)};
  const auto backend = first_.OpenBackend();
  ASSERT_OK(backend->CreateDataset(numbered));
  const auto again = *backend->OpenRows(numbered);
  constexpr int kCount = 40;
  const CellWrite cell{"c", "v", std::nullopt};
  for (int i = 0; i < kCount; ++i) {
    ASSERT_OK(store_->PutRow("events", fmt::format("row{}", i), {&cell, 1}, {}));
    ASSERT_OK(again->Put(fmt::format("row{}", i), {&cell, 1}, {}));
  }
  uint64_t left_alone = 0;
  const auto init = [&] {
    mysql::LeftAlone left;
    const auto read = [&] { return *store_->ListDatasets(); };
    EXPECT_OK(first_.OpenBackend()->Init(read, nullptr, &left));
    for (const auto& [why, count] : left) left_alone += count;
  };
  // First it dies with its shards put away, and somebody tries what may help.
  SetFailPointHook([&](std::string_view name) {
    if (name == "move.frozen") throw Died();
  });
  EXPECT_THROW(EXPECT_OK(MoveThere(kRows)), Died);
  SetFailPointHook(nullptr);
  init();
  EXPECT_EQ(left_alone, 4u);
  EXPECT_EQ(
      first_.a().Run("SELECT table_name FROM information_schema.tables WHERE table_schema = 'mod00000'"), "");
  SetFailPointHook([&](std::string_view name) {
    if (name.starts_with("move.")) init();
  });
  ASSERT_OK(MoveThere(kRows));
  SetFailPointHook(nullptr);
  EXPECT_GT(left_alone, 4u);
  for (int i = 0; i < kCount; ++i) {
    const auto row = store_->GetRow("events", fmt::format("row{}", i), {});
    ASSERT_OK(row);
    EXPECT_EQ(row->items.size(), 1u) << i;
    EXPECT_TRUE(Eventually([&] {
      const auto page = again->Get(fmt::format("row{}", i), {}, std::nullopt);
      return page.ok() && page->items.size() == 1;
    }));
  }
  init();
  EXPECT_EQ(Databases(first_.a(), "mod00000"), "") << "the old home is not made again";
  ASSERT_OK(FinishMove(first_.fleet(), kRows));
  ExpectInOrder();
}

TEST_F(MoveTest, CommitsWaitWhileTheyAreHeld) {
  auto held = shardops::HeldCommits::Hold(first_.host_a(), first_.fleet().access);
  ASSERT_OK(held.status());
  const auto last = [&] { return first_.a().Run("SELECT COALESCE(MAX(row_key), '') FROM mod00000.events"); };
  auto written = std::async(std::launch::async, [&] {
    return first_.a().Run("INSERT INTO mod00000.events VALUES ('held', 'c', 1, 'v')");
  });
  ASSERT_TRUE(Eventually([&] {
    return first_.a().Run("SELECT state FROM information_schema.processlist WHERE info LIKE 'INSERT%'") ==
           "Waiting for backup lock\n";
  }));
  EXPECT_EQ(last(), "\n");
  held = absl::CancelledError("let go");
  written.get();
  EXPECT_EQ(last(), "held\n");
}

TEST_F(MoveTest, ACopyThatTheMapNamesIsNotRemoved) {
  SetFailPointHook([&](std::string_view name) {
    if (name == "move.copied") throw Died();
  });
  EXPECT_THROW(EXPECT_OK(MoveThere(kRows)), Died);
  SetFailPointHook(nullptr);
  // Somebody has edited the map by hand.
  const auto maps = shardops::Maps::Load(first_.fleet().zookeeper, first_.fleet().root);
  ZooKeeperLedger& ledger = *first_.fleet().ledger;
  ASSERT_OK_AND_ASSIGN(const Held edit, ledger.Begin({.what = "edit"}));
  ASSERT_OK(maps->Give(ledger, edit, true, 2, 3, second_.hosts()));
  EXPECT_THAT(MoveThere(kRows), FailsWith(StatusCode::kFailedPrecondition, "it is no copy, and stays"));
  EXPECT_THAT(CancelMove(first_.fleet(), kRows),
              FailsWith(StatusCode::kFailedPrecondition, "has moved, and one before"));
  EXPECT_EQ(Databases(second_.a(), "mod00003"), "mod00003\n");
}

TEST_F(MoveTest, OldTablesAreRememberedWhenTheWayBackIsCancelled) {
  ASSERT_OK(MoveThere(kRows));
  SetFailPointHook([&](std::string_view name) {
    if (name == "move.copied") throw Died();
  });
  EXPECT_THROW(EXPECT_OK(Move(kRows, first_.hosts())), Died);
  SetFailPointHook(nullptr);
  ASSERT_OK(CancelMove(first_.fleet(), kRows));
  EXPECT_EQ(HomeOf(kRows), second_.hosts());
  ASSERT_OK(FinishMove(first_.fleet(), kRows));
  EXPECT_EQ(Databases(first_.a(), "%moved"), "");
  ExpectInOrder();
}

TEST_F(MoveTest, AStaleClientNeitherReadsNorWritesTheOldHome) {
  const auto map_file = [&](const char* name) {
    auto file = dir_.path() / name;
    std::ofstream(file) << first_.fleet().zookeeper.Get(fmt::format("/kvstore/shards/{}", name), false)->data;
    return file;
  };
  const TempDir dir;
  const auto id_file = map_file("id");
  const auto mod_file = map_file("mod");
  const auto stale =
      first_.OpenStore(dir_.path(), {.id = OpenFileSource(id_file), .mod = OpenFileSource(mod_file)});
  const auto put = [](KVStore& store, const std::string& value) {
    const CallScope scope(std::chrono::milliseconds(300));
    const CellWrite cell{"c", value, std::nullopt};
    for (int row = 0; row < 20; ++row) {
      if (auto status = store.PutRow("events", std::to_string(row), {&cell, 1}, {}).status(); !status.ok())
        return status;
    }
    return absl::OkStatus();
  };
  ASSERT_OK(put(*stale, "before"));
  constexpr MoveRange kAll{.mod = true, .first = 0, .last = 7};
  // It meets the move at each moment; and then sleeps through the rest.
  SetFailPointHook([&](std::string_view name) {
    if (name != "move.frozen" && name != "move.published") return;
    EXPECT_FALSE(put(*stale, "late").ok());
  });
  ASSERT_OK(MoveThere(kAll));
  SetFailPointHook(nullptr);
  EXPECT_FALSE(put(*stale, "late").ok());
  {
    const CallScope scope(std::chrono::milliseconds(300));
    EXPECT_FALSE(stale->GetRow("events", "1", {}).ok());
    EXPECT_FALSE(stale->CreateDataset({.name = "more"}).ok()) << "a table at the old home";
  }
  for (int row = 0; row < 20; ++row) {
    const auto got = store_->GetRow("events", std::to_string(row), {});
    ASSERT_OK(got.status());
    EXPECT_EQ(got->items.at(0).cells.at(0).value, "before");
  }
  // Its call in flight finds the new home as soon as the map does.
  std::atomic<bool> called{false};
  std::thread waiting([&] {
    const CellWrite cell{"c", "after", std::nullopt};
    called = true;
    EXPECT_OK(stale->PutRow("events", "1", {&cell, 1}, {}).status());
  });
  EXPECT_TRUE(Eventually([&] { return called.load(); }));
  map_file("mod");
  waiting.join();
  EXPECT_EQ(store_->GetRow("events", "1", {})->items.at(0).cells.at(0).value, "after");
}

TEST_F(MoveTest, WhatIsNotInOrderIsRefusedAndNothingChanges) {
  const auto refused = [&](const MoveRange& range, const Pair& to, StatusCode code, const std::string& why) {
    EXPECT_THAT(Move(range, to), FailsWith(code, why));
    EXPECT_EQ(HomeOf(kRows), first_.hosts());
    EXPECT_TRUE(LoadMoves(first_.fleet())->empty());
  };
  const auto no = StatusCode::kFailedPrecondition;
  refused({true, 3, 2}, second_.hosts(), StatusCode::kInvalidArgument, "is not within");
  refused({true, 6, 9}, second_.hosts(), no, "shard 8 of mod 6-9 is not open");
  refused(kRows, {second_.host_a(), first_.host_b()}, StatusCode::kInvalidArgument, "it takes two");
  refused(kRows, {second_.host_b(), second_.host_a()}, no,
          "is a master by the map, and follows");  // the wrong way round
  second_.b().Run("STOP SLAVE; SET GLOBAL slave_parallel_mode = 'optimistic'; START SLAVE");
  refused(kRows, second_.hosts(), no, "slave_parallel_mode is optimistic with slave_parallel_threads = 8");
  second_.b().Run("STOP SLAVE; SET GLOBAL slave_parallel_mode = 'minimal'; START SLAVE");
  second_.a().Run("SET GLOBAL gtid_domain_id = 1");
  refused(kRows, second_.hosts(), no, "gtid_domain_id: is 1 at");
  second_.b().Run("SET GLOBAL gtid_domain_id = 1");
  refused(kRows, second_.hosts(), no, "each pair needs one of its own");
  for (MariaDbServer* server : {&second_.a(), &second_.b()}) server->Run("SET GLOBAL gtid_domain_id = 2");
  second_.a().Run("CREATE DATABASE mod00002");
  refused(kRows, second_.hosts(), no, "has a database mod00002 already");
  second_.a().Run("DROP DATABASE mod00002");
  first_.a().Run("CREATE TABLE mod00001.`events$state` (a INT)");
  refused(kRows, second_.hosts(), no, "dataset events is being migrated");
  first_.a().Run("DROP TABLE mod00001.`events$state`");
  const std::string password = std::exchange(first_.fleet().access.replication_password, "wrong");
  EXPECT_THAT(MoveThere(kRows), FailsWith(StatusCode::kUnavailable, "Access denied"));
  first_.fleet().access.replication_password = password;
  EXPECT_OK(CancelMove(first_.fleet(), kRows));
  EXPECT_THAT(CancelMove(first_.fleet(), kRows), FailsWith(StatusCode::kNotFound, "no move"));
  EXPECT_THAT(FinishMove(first_.fleet(), kRows), FailsWith(StatusCode::kNotFound, "no move"));
  EXPECT_OK(Move(kRows, second_.hosts(), {.dry_run = true}));
  EXPECT_TRUE(LoadMoves(first_.fleet())->empty());
  EXPECT_OK(MoveThere(kRows));
}

TEST_F(MoveTest, OneAtATime) {
  SetFailPointHook([&](std::string_view name) {
    if (name != "move.copied") return;
    EXPECT_THAT(MoveThere(kRows), FailsWith(StatusCode::kFailedPrecondition, "another operator is at work"));
    EXPECT_THAT(CancelMove(first_.fleet(), kRows),
                FailsWith(StatusCode::kFailedPrecondition, "another operator is at work"));
    EXPECT_THAT(MoveThere(kIds), FailsWith(StatusCode::kFailedPrecondition, "one at a time"));
    EXPECT_THAT(Promote(first_.fleet(), first_.host_b(), {}),
                FailsWith(StatusCode::kFailedPrecondition, "in the move"));
  });
  EXPECT_OK(MoveThere(kRows));
  SetFailPointHook(nullptr);
  // When it has moved, pairs are as any other: their GTIDs are in order.
  for (const Host& host : {second_.host_b(), first_.host_b()}) {
    const auto promoted = Promote(first_.fleet(), host, {});
    ASSERT_OK(promoted.status());
    EXPECT_TRUE(promoted->follows);
  }
}

TEST_F(MoveTest, ACopyThatIsNotTheSameIsFoundOut) {
  const CellWrite cell{"c", "v", std::nullopt};
  for (int row = 0; row < 50; ++row)
    EXPECT_OK(store_->PutRow("events", std::to_string(row), {&cell, 1}, {}).status());
  SetFailPointHook([&](std::string_view name) {
    if (name == "move.following") second_.a().Run("UPDATE mod00002.events SET value = 'x' LIMIT 1");
  });
  EXPECT_THAT(MoveThere(kRows), FailsWith(StatusCode::kDataLoss, "mod00002"));
  SetFailPointHook(nullptr);
  EXPECT_EQ(HomeOf(kRows), first_.hosts());
  EXPECT_THAT(MoveThere(kRows), FailsWith(StatusCode::kDataLoss, "mod00002")) << "it is not forgotten";
  EXPECT_OK(CancelMove(first_.fleet(), kRows));
  EXPECT_EQ(Databases(second_.a(), "mod%"), "");
  EXPECT_OK(MoveThere(kRows));
}

TEST_F(MoveTest, ATransactionThatKeepsATableIsWaitedForBriefly) {
  first_.a().Run("SELECT 1");
  // A client's transaction that was forgotten, with a table of shard 2.
  std::atomic<bool> end{false};
  std::thread open;
  SetFailPointHook([&](std::string_view name) {
    if (name != "move.verified" || open.joinable()) return;
    open = std::thread([&] {
      first_.a().Run("BEGIN; SELECT COUNT(*) FROM mod00002.events; DO SLEEP(4)");
      end = true;
    });
    EXPECT_TRUE(
        Eventually([&] { return first_.a().Run("SHOW PROCESSLIST").find("SLEEP") != std::string::npos; }));
  });
  EXPECT_THAT(MoveThere(kRows), FailsWith(StatusCode::kUnavailable, "Lock wait timeout"));
  EXPECT_EQ(HomeOf(kRows), first_.hosts());
  const CellWrite cell{"c", "v", std::nullopt};
  for (int row = 0; row < 20; ++row)
    EXPECT_OK(store_->PutRow("events", std::to_string(row), {&cell, 1}, {}).status());
  open.join();
  SetFailPointHook(nullptr);
  EXPECT_OK(MoveThere(kRows));
}

TEST_F(MoveTest, ADeadHostDoesNotKeepTheRestFromBeingUsed) {
  History history(Clients::kKeys);
  Clients clients(*store_, "events", history, 2, Seed("dead host"));
  // The new master dies while nobody can use the shards.
  SetFailPointHook([&](std::string_view name) {
    if (name == "move.frozen") second_.a().Kill();
  });
  EXPECT_FALSE(MoveThere(kRows).ok());
  SetFailPointHook(nullptr);
  EXPECT_EQ(HomeOf(kRows), first_.hosts());
  clients.Work(50);
  // It comes back without its channel's filter.
  second_.a().Start();
  EXPECT_THAT(MoveThere(kRows), FailsWith(StatusCode::kFailedPrecondition, "is not as it was"));
  second_.a().Run(
      "SET GLOBAL rpl_semi_sync_slave_enabled = OFF, rpl_semi_sync_master_enabled = ON, read_only = OFF");
  EXPECT_OK(CancelMove(first_.fleet(), kRows));
  clients.Work(50);
  EXPECT_TRUE(Eventually([&] { return MoveThere(kRows).ok(); }));
  clients.Work(50);
  clients.Stop();
  EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
  EXPECT_EQ(history.Check(), std::nullopt);
}

TEST_F(MoveTest, TheOldMasterDiesWhileNobodyCanUseThem) {
  History history(Clients::kKeys);
  Clients clients(*store_, "events", history, 2, Seed("dead source"));
  clients.Work(20);
  ASSERT_OK(shardops::Look(first_.fleet()));
  SetFailPointHook([&](std::string_view name) {
    if (name == "move.frozen") first_.a().Kill();
  });
  EXPECT_THAT(MoveThere(kRows), FailsWith(StatusCode::kUnavailable, "Nobody can use shards mod 0-3 now"));
  SetFailPointHook(nullptr);
  ASSERT_OK(Promote(first_.fleet(), first_.host_b(), {.emergency = true}).status());
  EXPECT_THAT(MoveThere(kRows), FailsWith(StatusCode::kUnavailable, ""));
  ASSERT_OK(CancelMove(first_.fleet(), kRows));
  clients.Work(20);
  clients.Stop();
  EXPECT_EQ(history.Check(), std::nullopt);
  EXPECT_EQ(Databases(second_.a(), "mod%"), "");
}

}  // namespace
}  // namespace kvstore::testing
