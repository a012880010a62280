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
#include "shardops/blocked_commits.h"
#include "shardops/status.h"
#include "tests/migration/migrating_store.h"
#include "tests/shardops/move_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

/// Shards move from one pair of servers to another while clients use them; the clients' history is checked.
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

TEST(MovePatterns, CoverTheRangeAndNothingElse) {
  EXPECT_EQ(shardops::ReplicationPatterns(ShardSpace::kId, 7, 7), "db00007.%");
  EXPECT_EQ(shardops::ReplicationPatterns(ShardSpace::kId, 8, 21),
            "db00008.%,db00009.%,db0001_.%,db00020.%,db00021.%");
  EXPECT_EQ(shardops::ReplicationPatterns(ShardSpace::kMod, 0, 1099), "mod00___.%,mod010__.%");
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
  /// Checks, after Stop, that every object was created once and is there.
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

TEST_F(MoveTest, HalfOfAPairUnderLoadThereAndBack) {
  History history(Clients::kKeys);
  Clients clients(*store_, "events", history, 4, Seed("move"));
  Creator creator(*store_);
  clients.Work(100);
  PrepareForLoad(first_.a(), second_.a());
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
  // The rows move back, with what was written at the second pair.
  PrepareForLoad(second_.a(), first_.a());
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
    EXPECT_EQ(Channels(*server), "");
    if (OnMySql()) continue;
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
      PrepareForLoad(first_.a(), second_.a());
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
        PrepareForLoad(second_.a(), first_.a());
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
  // With so many tables, the shards are switched in several groups.
  for (int i = 0; i < 11; ++i) EXPECT_OK(store_->CreateDataset({.name = "more" + std::to_string(i)}));
  constexpr MoveRange kAll{.space = ShardSpace::kMod, .first = 0, .last = 7};
  History history(Clients::kKeys);
  Clients clients(*store_, "events", history, 2, Seed("in part"));
  const auto die_once = [&] {
    SetFailPointHook([&](std::string_view name) {
      if (name == "move.published") throw Died();
    });
    EXPECT_THROW(EXPECT_OK(MoveThere(kAll)), Died);
    SetFailPointHook(nullptr);
    EXPECT_EQ(HomeOf(kAll), second_.hosts());
    EXPECT_EQ(HomeOf({ShardSpace::kMod, 7, 7}), first_.hosts());
    clients.Work(20);
  };
  die_once();
  ASSERT_OK(CancelMove(first_.fleet(), kAll));
  clients.Work(20);
  const auto moves = LoadMoves(first_.fleet());
  ASSERT_EQ(moves->known.size(), 1u);
  const MoveRange moved = moves->known.front().range;
  EXPECT_LT(moved.last, 7u);
  ExpectInOrder();
  EXPECT_THAT(MoveThere(kAll), FailsWith(StatusCode::kFailedPrecondition, "move each part by itself"));
  ASSERT_OK(FinishMove(first_.fleet(), moved));
  ASSERT_OK(Move(moved, first_.hosts()));
  ASSERT_OK(FinishMove(first_.fleet(), moved));
  die_once();
  ASSERT_OK(MoveThere(kAll));
  EXPECT_EQ(HomeOf({ShardSpace::kMod, 7, 7}), second_.hosts());
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
  ASSERT_OK(shardops::InspectFleet(first_.fleet()));
  second_.a().Kill();
  ASSERT_OK(Promote(first_.fleet(), second_.host_b(), {.emergency = true}).status());
  clients.Work(20);
  ASSERT_OK(CancelMove(first_.fleet(), kRows));
  EXPECT_EQ(HomeOf(kRows).master, second_.host_b());
  EXPECT_EQ(LoadMoves(first_.fleet())->known.front().state, MoveState::kMoved);
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
  EXPECT_EQ(Channels(second_.a()), "kvstore_move\n");
  if (!OnMySql()) {
    EXPECT_EQ(second_.a().Run(settings), "8\tFILTER_ON_SLAVE\n");
  }
  const auto master = shardops::HostAdmin::Open(second_.host_a(), first_.fleet().access);
  ASSERT_OK((*master)->Follow(second_.host_b(), first_.fleet().access));
  EXPECT_EQ(Channels(second_.a()), "");
  if (!OnMySql()) {
    EXPECT_EQ(second_.a().Run(settings), "0\tREPLICATE\n");
  }
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
  // First the move dies while its shards are out of use, and an operator runs what may help.
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

TEST_F(MoveTest, BytesAndTextsOfAllKindsAreCopied) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  const std::string large(1'500'000, '\'');  // more than one statement copies
  std::vector<std::string> rows;
  for (int i = 0; i < 16; ++i) {
    rows.push_back(bytes + std::to_string(i));
    const std::string column = bytes.substr(static_cast<size_t>(i));
    for (const std::string& value : {bytes, std::string("\\' \\0 \" %_"), i == 0 ? large : bytes}) {
      const CellWrite cell{column, value, std::nullopt};
      ASSERT_OK(store_->PutRow("events", rows.back(), {&cell, 1}, {}));
    }
  }
  const std::string text = "{\"a\": \"it's \\\\ and \\\" and \\u00e4\", \"b\": \"\xc3\xa4\xf0\x9f\x8d\x92\"}";
  std::vector<uint64_t> ids;
  for (int i = 0; i < 40; ++i) ids.push_back(*store_->CreateObject("pins", text, {}));
  const auto contents = [&] {
    std::vector<std::string> all;
    for (const std::string& row : rows) {
      const auto page = store_->GetRow("events", row, {});
      EXPECT_OK(page.status());
      for (const auto& item : page->items) {
        for (const auto& cell : item.cells) all.push_back(cell.value);
      }
    }
    for (const uint64_t id : ids) all.push_back(store_->GetObject("pins", id, {})->data);
    return all;
  };
  const std::vector<std::string> before = contents();
  EXPECT_GE(before.size(), 16u + 40u);
  EXPECT_OK(MoveThere(kRows));
  EXPECT_OK(MoveThere(kIds));
  EXPECT_TRUE(contents() == before);
}

TEST_F(MoveTest, CommitsWaitWhileTheyAreHeld) {
  auto held = shardops::BlockedCommits::Block(first_.host_a(), first_.fleet().access);
  ASSERT_OK(held.status());
  const auto last = [&] { return first_.a().Run("SELECT COALESCE(MAX(row_key), '') FROM mod00000.events"); };
  auto written = std::async(std::launch::async, [&] {
    return first_.a().Run("INSERT INTO mod00000.events VALUES ('held', 'c', 1, 'v')");
  });
  ASSERT_TRUE(Eventually([&] {
    return first_.a().Run("SELECT state FROM information_schema.processlist WHERE info LIKE 'INSERT%'") ==
           (OnMySql() ? "Waiting for global read lock\n" : "Waiting for backup lock\n");
  }));
  EXPECT_EQ(last(), "\n");
  EXPECT_OK(held->Check());
  held = absl::CancelledError("let go");
  written.get();
  EXPECT_EQ(last(), "held\n");
}

TEST_F(MoveTest, CommitsThatWereLetGoAreNotTakenForHeld) {
  auto held = shardops::BlockedCommits::Block(first_.host_a(), first_.fleet().access);
  ASSERT_OK(held.status());
  // The server ends the connection, as it does when that is idle for long.
  first_.a().Run("KILL " + first_.a().Run("SELECT MAX(id) FROM information_schema.processlist WHERE user = "
                                          "'root' AND command = 'Sleep' AND id < CONNECTION_ID()"));
  EXPECT_THAT(held->Check(), FailsWith(StatusCode::kUnavailable, "were not blocked for long enough"));
  first_.a().Run("INSERT INTO mod00000.events VALUES ('r', 'c', 1, 'v')");
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
  ASSERT_OK(maps->Assign(ledger, edit, ShardSpace::kMod, 2, 3, second_.hosts()));
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
    const CellWrite cell{"c", value, std::nullopt};
    for (int row = 0; row < 20; ++row) {
      if (auto status = store.PutRow("events", std::to_string(row), {&cell, 1}, {}).status(); !status.ok())
        return status;
    }
    return absl::OkStatus();
  };
  ASSERT_OK(put(*stale, "before"));
  constexpr MoveRange kAll{.space = ShardSpace::kMod, .first = 0, .last = 7};
  const auto expect_no_put = [&] {
    const CallScope scope(std::chrono::milliseconds(300));
    EXPECT_FALSE(put(*stale, "late").ok());
  };
  // The stale client makes calls at each step of the move; then it sleeps until the end.
  SetFailPointHook([&](std::string_view name) {
    if (name == "move.frozen" || name == "move.published") expect_no_put();
  });
  ASSERT_OK(MoveThere(kAll));
  SetFailPointHook(nullptr);
  expect_no_put();
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
  // A call of its in flight goes to the new home as soon as its map names that.
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

}  // namespace
}  // namespace kvstore::testing
