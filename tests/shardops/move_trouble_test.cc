#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/fail_point.h"
#include "shardops/channel.h"
#include "shardops/move.h"
#include "shardops/promote.h"
#include "shardops/status.h"
#include "tests/migration/migrating_store.h"
#include "tests/shardops/move_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

/// Moves that are refused, or meet hosts, copies and transactions that are not as they should be.
namespace kvstore::testing {
namespace {

using absl::StatusCode;
using shardops::CancelMove;
using shardops::FinishMove;
using shardops::LoadMoves;
using shardops::MoveRange;
using shardops::MoveRecord;
using shardops::MoveState;
using shardops::Pair;

TEST_F(MoveTest, WhatIsNotInOrderIsRefusedAndNothingChanges) {
  const auto refused = [&](const MoveRange& range, const Pair& to, StatusCode code, const std::string& why) {
    EXPECT_THAT(Move(range, to), FailsWith(code, why));
    EXPECT_EQ(HomeOf(kRows), first_.hosts());
    EXPECT_TRUE(LoadMoves(first_.fleet())->known.empty());
  };
  const auto no = StatusCode::kFailedPrecondition;
  refused({ShardSpace::kMod, 3, 2}, second_.hosts(), StatusCode::kInvalidArgument, "3-2 is reversed");
  refused({ShardSpace::kMod, 0, 65'536}, second_.hosts(), StatusCode::kInvalidArgument, "goes beyond 65535");
  refused({ShardSpace::kMod, 6, 9}, second_.hosts(), no,
          "mod 6-9 goes beyond 7, the last mod shard: there are 8");
  refused({ShardSpace::kId, 6, 9}, second_.hosts(), no, "shard 8 of db 6-9 is not open");
  refused(kRows, {second_.host_a(), first_.host_b()}, StatusCode::kInvalidArgument,
          "needs two different hosts");
  refused(kRows, {second_.host_b(), second_.host_a()}, no,
          "is a master by the map, and follows");  // the wrong way round
  if (OnMySql()) {
    second_.b().Run(
        "STOP SLAVE SQL_THREAD; SET GLOBAL replica_preserve_commit_order = OFF; START SLAVE SQL_THREAD");
    refused(kRows, second_.hosts(), no, "replica_preserve_commit_order is OFF");
    second_.b().Run(
        "STOP SLAVE SQL_THREAD; SET GLOBAL replica_preserve_commit_order = ON; START SLAVE SQL_THREAD");
    first_.a().Run("SET GLOBAL binlog_format = MIXED");
    refused(kRows, second_.hosts(), no, "binlog_format is MIXED");
    first_.a().Run("SET GLOBAL binlog_format = ROW, sync_binlog = 0");
    refused(kRows, second_.hosts(), no, "sync_binlog is 0, and innodb_flush_log_at_trx_commit 1");
    first_.a().Run("SET GLOBAL sync_binlog = 1, innodb_flush_log_at_trx_commit = 2");
    refused(kRows, second_.hosts(), no, "sync_binlog is 1, and innodb_flush_log_at_trx_commit 2");
    first_.a().Run("SET GLOBAL innodb_flush_log_at_trx_commit = 1");
    second_.a().Run("SET GLOBAL rpl_semi_sync_slave_enabled = ON");
    refused(kRows, second_.hosts(), no, "rpl_semi_sync_replica_enabled is ON");
    second_.a().Run("SET GLOBAL rpl_semi_sync_slave_enabled = OFF");
  } else {
    second_.b().Run("STOP SLAVE; SET GLOBAL slave_parallel_mode = 'optimistic'; START SLAVE");
    refused(kRows, second_.hosts(), no, "slave_parallel_mode is optimistic with slave_parallel_threads = 8");
    second_.b().Run("STOP SLAVE; SET GLOBAL slave_parallel_mode = 'minimal'; START SLAVE");
    second_.a().Run("SET GLOBAL gtid_domain_id = 1");
    refused(kRows, second_.hosts(), no, "gtid_domain_id: is 1 at");
    second_.b().Run("SET GLOBAL gtid_domain_id = 1");
    refused(kRows, second_.hosts(), no, "each pair needs one of its own");
    for (MariaDbServer* server : {&second_.a(), &second_.b()}) server->Run("SET GLOBAL gtid_domain_id = 2");
  }
  second_.a().Run("CREATE DATABASE mod00002");
  refused(kRows, second_.hosts(), no, "has a database mod00002 already");
  refused(kRows, second_.hosts(), no, "whether the map is right (kv shards history), before one is dropped");
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
  EXPECT_TRUE(LoadMoves(first_.fleet())->known.empty());
  EXPECT_OK(MoveThere(kRows));
}

TEST_F(MoveTest, WhatTheSlaveHasNotAcknowledgedIsNoDifference) {
  // The master sends a write to the channel before it commits it, and has to wait for its slave to do so.
  bool told_apart = false;
  std::thread writer;
  SetFailPointHook([&](std::string_view name) {
    if (name == "move.following" && !writer.joinable()) {
      first_.b().Run("STOP SLAVE IO_THREAD");
      writer = std::thread([&] {
        first_.a().Run(
            "SET SESSION binlog_format = ROW; INSERT INTO mod00000.events VALUES ('r', 'c', 1, 'v')");
      });
      EXPECT_TRUE(Eventually([&] {
        return !first_.a().Run("SHOW STATUS LIKE 'Rpl_semi_sync_master_wait_sessions'").ends_with("\t0\n");
      }));
    } else if (name == "move.uncommitted" && !std::exchange(told_apart, true)) {
      EXPECT_EQ(first_.a().Run("SELECT COUNT(*) FROM mod00000.events"), "0\n");
      EXPECT_EQ(second_.a().Run("SELECT COUNT(*) FROM mod00000.events"), "1\n");
      first_.b().Run("START SLAVE IO_THREAD");
    }
  });
  EXPECT_OK(MoveThere(kRows));
  SetFailPointHook(nullptr);
  EXPECT_TRUE(told_apart);
  first_.b().Run("START SLAVE IO_THREAD");
  writer.join();
  EXPECT_EQ(second_.a().Run("SELECT COUNT(*) FROM mod00000.events"), "1\n");
}

TEST_F(MoveTest, ATargetThatIsAheadOfTheSourceIsRefused) {
  if (!OnMySql()) GTEST_SKIP() << "MySQL only: on MariaDB a channel goes by the position in the log alone";
  // As if an earlier channel had brought what the source's slave had not: the source, made anew of that
  // slave, would give the same GTIDs to other transactions.
  const std::string uuid = first_.a().Run("SELECT @@server_uuid").substr(0, 36);
  SetFailPointHook([](std::string_view name) {
    if (name == "move.following") throw Died();
  });
  EXPECT_THROW(MoveThere(kRows).IgnoreError(), Died);
  SetFailPointHook(nullptr);
  second_.a().Run(fmt::format("SET gtid_next = '{}:1000000'; COMMIT; SET gtid_next = 'AUTOMATIC'", uuid));
  // A copy that has such a transaction does not go on.
  const std::string ahead = "has 1 transactions that began on " + first_.host_a().ToString();
  const absl::Status on = MoveThere(kRows);
  EXPECT_THAT(on, FailsWith(StatusCode::kFailedPrecondition, ahead));
  EXPECT_THAT(on, FailsWith(StatusCode::kFailedPrecondition, "give up this copy by kv shards move cancel"));
  ASSERT_OK(CancelMove(first_.fleet(), kRows));
  EXPECT_THAT(MoveThere(kRows), FailsWith(StatusCode::kFailedPrecondition, ahead));
  EXPECT_TRUE(LoadMoves(first_.fleet())->known.empty());
  // Its slave gives GTIDs of its own.
  ASSERT_OK(Promote(first_.fleet(), first_.host_b(), {}).status());
  first_.b().Run("SET GLOBAL sync_binlog = 1, innodb_flush_log_at_trx_commit = 1");
  EXPECT_OK(MoveThere(kRows));
  ExpectInOrder();
}

TEST_F(MoveTest, AMoveDoesNotGoOnAfterACancelThatWasStopped) {
  if (!OnMySql()) GTEST_SKIP() << "MySQL only: MariaDB marks what a channel is to skip";
  const auto die_at = [](std::string_view point) {
    SetFailPointHook([point](std::string_view name) {
      if (name == point) throw Died();
    });
  };
  die_at("move.frozen");
  EXPECT_THROW(MoveThere(kRows).IgnoreError(), Died);
  // The channel was not told to skip what puts the shards back into use.
  die_at("move.thawed");
  EXPECT_THROW(CancelMove(first_.fleet(), kRows).IgnoreError(), Died);
  SetFailPointHook(nullptr);
  const CellWrite cell{"c", "v", std::nullopt};
  EXPECT_OK(store_->PutRow("events", "row", {&cell, 1}, {}).status());
  EXPECT_THAT(MoveThere(kRows), FailsWith(StatusCode::kFailedPrecondition, "has not been told to skip"));
  EXPECT_EQ(HomeOf(kRows), first_.hosts());
  EXPECT_OK(CancelMove(first_.fleet(), kRows));
  EXPECT_EQ(Databases(second_.a(), "mod%"), "");
  EXPECT_OK(MoveThere(kRows));
  ExpectInOrder();
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
  // After the move both pairs can be promoted as any other: their GTIDs are in order.
  for (const Host& host : {second_.host_b(), first_.host_b()}) {
    const auto promoted = Promote(first_.fleet(), host, {});
    ASSERT_OK(promoted.status());
    EXPECT_TRUE(promoted->follows);
  }
}

TEST_F(MoveTest, TheRecordIsReplacedByThoseOfItsPartsOrNotAtAll) {
  shardops::FleetOperator& fleet = first_.fleet();
  const auto record = [&](uint32_t first, uint32_t last, MoveState state) {
    return MoveRecord{.range = {ShardSpace::kMod, first, last},
                      .from = first_.hosts(),
                      .to = second_.hosts(),
                      .state = state};
  };
  MoveRecord move = record(0, 3, MoveState::kSwitching);
  ASSERT_OK(SaveMove(fleet, move));
  const std::vector<MoveRecord> parts = {record(0, 1, MoveState::kMoved), record(2, 3, MoveState::kMoved)};
  MoveRecord in_the_way = parts.back();
  ASSERT_OK(SaveMove(fleet, in_the_way));
  EXPECT_THAT(ReplaceMove(fleet, move, parts), FailsWith(StatusCode::kAborted, "another process"));
  EXPECT_EQ(LoadMoves(fleet)->known.size(), 2u) << "neither removed nor saved";
  ASSERT_OK(ReplaceMove(fleet, in_the_way, {}));
  ASSERT_OK(ReplaceMove(fleet, move, parts));
  const auto moves = LoadMoves(fleet);
  ASSERT_EQ(moves->known.size(), 2u);
  EXPECT_EQ(moves->known.front().range, parts.front().range);
  EXPECT_EQ(moves->known.back().range, parts.back().range);
  // A record of the same shards takes the place of the one before.
  MoveRecord whole = moves->known.front();
  whole.old_homes = {first_.hosts()};
  EXPECT_OK(ReplaceMove(fleet, record(0, 1, MoveState::kSwitching), {&whole, 1}));
  EXPECT_EQ(LoadMoves(fleet)->known.front().old_homes.size(), 1u);
}

TEST_F(MoveTest, AMapThatWasEditedDuringAMoveIsPutBackAsItWas) {
  shardops::FleetOperator& fleet = first_.fleet();
  SetFailPointHook([](std::string_view name) {
    if (name == "move.copied") throw Died();
  });
  EXPECT_THROW(MoveThere(kRows).IgnoreError(), Died);
  SetFailPointHook(nullptr);
  const auto maps = shardops::Maps::Load(fleet.zookeeper, fleet.root);
  ASSERT_OK(maps);
  const shardops::StoredMap& rows = *maps->Find(ShardSpace::kMod);
  const std::string edited = fmt::format(
      R"([{{"range": [0, 3], "master": "third:1", "slave": "third:2"}},
          {{"range": [4, {}], "master": "{}", "slave": "{}"}}])",
      PairFleet::kShards - 1, first_.host_a().ToString(), first_.host_b().ToString());
  ASSERT_OK(fleet.zookeeper.Set(rows.path, edited, rows.version));
  // The second pair has a copy that is not complete: who is told to choose a pair may lose what is written.
  const absl::Status refused = CancelMove(fleet, kRows);
  EXPECT_THAT(refused, FailsWith(StatusCode::kFailedPrecondition, "kv shards undo --mod puts that in force"));
  EXPECT_EQ(std::string(refused.message()).find("kv shards set"), std::string::npos);
  ASSERT_OK(fleet.zookeeper.Set(rows.path, rows.map.ToJson(), -1));
  EXPECT_OK(CancelMove(fleet, kRows));
  ExpectInOrder();
}

TEST_F(MoveTest, ADamagedRecordHidesNoOtherAndRefusesOnlyWhatItMayBeAbout) {
  shardops::FleetOperator& fleet = first_.fleet();
  const auto no = StatusCode::kFailedPrecondition;
  // The move of the rows has begun, so that the ledger has its hosts; then its record is damaged.
  SetFailPointHook([](std::string_view name) {
    if (name == "move.following") throw Died();
  });
  EXPECT_THROW(MoveThere(kRows).IgnoreError(), Died);
  SetFailPointHook(nullptr);
  const std::string path = fleet.root + "/moves/mod-0-3";
  const auto whole = fleet.zookeeper.Get(path, /*watch=*/false);
  ASSERT_OK(whole);
  ASSERT_OK(fleet.zookeeper.Set(path, "{", -1));
  MoveRecord other{.range = kIds, .from = second_.hosts(), .to = first_.hosts(), .state = MoveState::kMoved};
  ASSERT_OK(SaveMove(fleet, other));
  ASSERT_OK_AND_ASSIGN(const shardops::Moves moves, LoadMoves(fleet));
  ASSERT_EQ(moves.known.size(), 1u);
  EXPECT_EQ(moves.known.front().range, kIds);
  ASSERT_EQ(moves.damaged.size(), 1u);
  EXPECT_EQ(moves.damaged.front().range, kRows);
  // An operation in flight there is neither hidden nor released.
  EXPECT_THAT(Promote(fleet, first_.host_b(), {}), FailsWith(no, path));
  EXPECT_THAT(Promote(fleet, first_.host_b(), {}), FailsWith(no, "docs/runbook.md"));
  EXPECT_THAT(MoveThere(kRows), FailsWith(no, path));
  EXPECT_THAT(CancelMove(fleet, kRows), FailsWith(no, path));
  EXPECT_THAT(FinishMove(fleet, kRows), FailsWith(no, path));
  ASSERT_OK_AND_ASSIGN(const auto operations, fleet.ledger->List());
  ASSERT_EQ(operations.size(), 1u) << "its claims stay";
  EXPECT_EQ(operations.front().what, "move shards mod 0-3");
  // Other shards are not concerned.
  EXPECT_OK(FinishMove(fleet, kIds));
  // Another pair is not either, where it has no shard of that range; the ledger knows where they were to go.
  ASSERT_OK_AND_ASSIGN(const auto maps, shardops::Maps::Load(fleet.zookeeper, fleet.root));
  EXPECT_OK(moves.CheckPair(maps, second_.hosts()));
  EXPECT_THAT(moves.CheckPair(maps, first_.hosts()), FailsWith(no, path));
  // Once the record is put back, the move goes on.
  ASSERT_OK(fleet.zookeeper.Set(path, whole->data, -1));
  EXPECT_OK(MoveThere(kRows));
}

TEST_F(MoveTest, ARecordWhoseNameSaysNoShardsMayBeAboutAny) {
  shardops::FleetOperator& fleet = first_.fleet();
  const auto no = StatusCode::kFailedPrecondition;
  for (const char* const name : {"mod-3", "mod-03-4", "mod-4-3", "other-0-3", "mod-0-3-5"}) {
    const std::string path = fleet.root + "/moves/" + name;
    ASSERT_OK(fleet.zookeeper.Create(path, "{}"));
    EXPECT_THAT(Promote(fleet, first_.host_b(), {}), FailsWith(no, path));
    EXPECT_THAT(MoveThere(kRows), FailsWith(no, path));
    ASSERT_OK(fleet.zookeeper.Delete(path));
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
  // A client has forgotten a transaction that uses a table of shard 2.
  std::atomic<bool> end{false};
  std::thread open;
  SetFailPointHook([&](std::string_view name) {
    if (name != "move.verified" || open.joinable()) return;
    open = std::thread([&] {
      first_.a().Run("BEGIN; SELECT COUNT(*) FROM mod00002.events; DO SLEEP(12)");
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
  // The server comes back without the filter of its channel.
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

TEST_F(MoveTest, WithoutTheTargetShardsAreUsedAgainWhateverIsInTheWay) {
  const CellWrite cell{"c", "v", std::nullopt};
  const auto put_all = [&] {
    for (int row = 0; row < 20; ++row) {
      if (auto status = store_->PutRow("events", std::to_string(row), {&cell, 1}, {}).status();
          !status.ok()) {
        return status;
      }
    }
    return absl::OkStatus();
  };
  ASSERT_OK(put_all());
  SetFailPointHook([&](std::string_view name) {
    if (name != "move.frozen") return;
    // Somebody makes tables in the shards' place. To drop them, and have the target's channel skip that,
    // takes more than the target was prepared for.
    for (const char* const shard : {"mod00000", "mod00001", "mod00002", "mod00003"}) {
      first_.a().Run(
          fmt::format("CREATE DATABASE {0}; CREATE TABLE {0}.events LIKE {0}_moved.events", shard));
    }
    second_.a().Kill();
  });
  EXPECT_THAT(MoveThere(kRows), FailsWith(StatusCode::kUnavailable, ""));
  SetFailPointHook(nullptr);
  EXPECT_EQ(HomeOf(kRows), first_.hosts());
  EXPECT_TRUE(Eventually([&] { return put_all().ok(); }));
  EXPECT_EQ(Databases(first_.a(), "mod%moved"), "");
  if (OnMySql()) {
    EXPECT_EQ(LoadMoves(first_.fleet())->known.front().position.file, "")
        << "its channel was not told to skip it";
  }
  second_.a().Start();
  EXPECT_THAT(MoveThere(kRows), FailsWith(StatusCode::kFailedPrecondition,
                                          OnMySql() ? "has not been told to skip" : "is not as it was"));
  second_.a().Run(
      "SET GLOBAL rpl_semi_sync_slave_enabled = OFF, rpl_semi_sync_master_enabled = ON, read_only = OFF");
  EXPECT_OK(CancelMove(first_.fleet(), kRows));
  EXPECT_OK(put_all());
  ExpectInOrder();
}

TEST_F(MoveTest, TheChannelIsNotForgottenForWhatIsInTheWayAtTheSource) {
  SetFailPointHook([&](std::string_view name) {
    if (name != "move.frozen") return;
    // The target has such a database: its channel stops.
    first_.a().Run(
        "CREATE DATABASE mod00000; CREATE TABLE mod00000.events LIKE mod00000_moved.events; "
        "INSERT INTO mod00000.events VALUES ('told', 'c', 1, 'v')");
  });
  EXPECT_THAT(MoveThere(kRows),
              FailsWith(StatusCode::kFailedPrecondition, "has rows that clients were told of"));
  SetFailPointHook(nullptr);
  EXPECT_NE(LoadMoves(first_.fleet())->known.front().position.file, "");
  first_.a().Run("CREATE DATABASE kept; RENAME TABLE mod00000.events TO kept.events");
  EXPECT_OK(CancelMove(first_.fleet(), kRows));
  EXPECT_OK(MoveThere(kRows));
  first_.a().Run("DROP DATABASE kept");
  ExpectInOrder();
}

TEST_F(MoveTest, ATargetThatIsNotConnectedHasNotCaughtUp) {
  bool stopped = false;
  bool waited = false;
  SetFailPointHook([&](std::string_view name) {
    if (name != "move.verified") return;
    second_.a().Run(OnMySql() ? "STOP REPLICA IO_THREAD FOR CHANNEL 'kvstore_move'"
                              : "STOP SLAVE 'kvstore_move' IO_THREAD");
    stopped = true;
  });
  const auto progress = [&](std::string_view step, uint64_t, uint64_t) {
    // Nobody has written anything.
    if (stopped && step == "catch up" && !std::exchange(waited, true)) {
      second_.a().Run(
          OnMySql() ? "START REPLICA IO_THREAD USER = 'repl' PASSWORD = 'repl' FOR CHANNEL 'kvstore_move'"
                    : "START SLAVE 'kvstore_move' IO_THREAD");
    }
    return true;
  };
  EXPECT_OK(Move(kRows, second_.hosts(), {.hold_writes = true, .progress = progress}));
  EXPECT_TRUE(waited);
}

TEST_F(MoveTest, AChannelThatWasNotFinishedIsMadeAnew) {
  SetFailPointHook([](std::string_view name) {
    if (name == "move.following") throw Died();
  });
  EXPECT_THROW(MoveThere(kRows).IgnoreError(), Died);
  SetFailPointHook(nullptr);
  // As if the process had died before it gave the channel its filter.
  const shardops::Position position = LoadMoves(first_.fleet())->known.front().position;
  ASSERT_OK_AND_ASSIGN(const auto target, shardops::HostAdmin::Open(second_.host_a(), first_.fleet().access));
  ASSERT_OK(shardops::Channel(*target).End());
  const char* const statement =
      OnMySql() ? "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {}, "
                  "SOURCE_LOG_FILE = '{}', SOURCE_LOG_POS = {}, SOURCE_AUTO_POSITION = 0 FOR CHANNEL "
                  "'kvstore_move'"
                : "CHANGE MASTER 'kvstore_move' TO master_host = '127.0.0.1', master_port = {}, "
                  "master_log_file = '{}', master_log_pos = {}, master_use_gtid = no; "
                  "SET default_master_connection = 'kvstore_move'; "
                  "SET GLOBAL replicate_wild_do_table = 'db0000_.%'";  // of an earlier move
  second_.a().Run(fmt::format(fmt::runtime(statement), first_.a().port(), position.file, position.offset));
  const CellWrite cell{"c", "v", std::nullopt};
  for (int row = 0; row < 20; ++row)
    EXPECT_OK(store_->PutRow("events", std::to_string(row), {&cell, 1}, {}).status());
  EXPECT_OK(MoveThere(kRows));
  ExpectInOrder();
}

TEST_F(MoveTest, TheOldMasterDiesWhileNobodyCanUseThem) {
  History history(Clients::kKeys);
  Clients clients(*store_, "events", history, 2, Seed("dead source"));
  clients.Work(20);
  ASSERT_OK(shardops::InspectFleet(first_.fleet()));
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
