#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend_api/outcome.h"
#include "backends/mysql/rows/row_writer.h"
#include "idgen/object_id.h"
#include "shardmap/mod_shard.h"
#include "tests/backends/mysql/test_fleet.h"
#include "tests/support/eventually.h"
#include "tests/support/tcp_proxy.h"

/// Connections that are cut: which calls are retried, which are reported as in doubt, and that no retry
/// undoes what other clients did.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
constexpr uint32_t kOfFirst = 0;  // a shard of the first host
const DatasetSpec kObjects{.name = "pins", .shape = Shape::kObjects, .type = 1};

/// A dataset, and a backend that reaches the shards of the first host through a proxy.
struct Proxied {
  explicit Proxied(const DatasetSpec& wanted, const mysql::MySqlOptions& options = TestFleet::Options())
      : direct(wanted, options), proxy(SharedFleet().server(0).port()) {
    backend = *SharedFleet().OpenAt(proxy.address(), SharedFleet().server(1).address(), options);
  }
  Opened direct;
  TcpProxy proxy;
  std::unique_ptr<MySqlBackend> backend;
};

TEST(Cuts, ReadsAreRepeated) {
  Proxied proxied(kObjects);
  ASSERT_OK_AND_ASSIGN(const uint64_t id, proxied.direct.objects->Create(R"({"n":1})", {.shard = kOfFirst}));
  const auto objects = *proxied.backend->OpenObjects(proxied.direct.spec);
  ASSERT_OK(objects->Get(id, {}));
  // The statement is prepared by now, so that only its number and the ID, as 8 bytes, go to the server.
  std::string local(8, '\0');
  local[0] = static_cast<char>(id & 0xFF);
  proxied.proxy.CutAtAnswerTo(local);
  EXPECT_OK(objects->Get(id, {}));
  EXPECT_TRUE(proxied.proxy.HasCut());
}

/// The statement that commits the object "unique text". A create is a single statement where the server
/// returns the new ID; on MySQL it is a transaction.
const char* const kCommitOfCreate = OnMySql() ? "COMMIT" : "unique text";

TEST(Cuts, ACreateWhoseAnswerIsLostMayHaveHappenedAndIsNotRepeated) {
  Proxied proxied(kObjects);
  const auto objects = *proxied.backend->OpenObjects(proxied.direct.spec);
  ASSERT_OK(objects->Create(R"({"a":"warm"})", {.shard = kOfFirst}));
  proxied.proxy.CutAtAnswerTo(kCommitOfCreate);
  EXPECT_THAT(objects->Create(R"({"a":"unique text"})", {.shard = kOfFirst}),
              FailsWith(kUnavailable, "may or may not have happened"));
  EXPECT_EQ(SharedFleet().server(0).Run("SELECT COUNT(*) FROM db00000.pins WHERE data LIKE '%unique text%'"),
            "1\n");
}

TEST(Cuts, AnUpdateThatWasNotCommittedIsRepeated) {
  Proxied proxied(kObjects);
  const auto objects = *proxied.backend->OpenObjects(proxied.direct.spec);
  ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create(R"({"n":0})", {.shard = kOfFirst}));
  proxied.proxy.CutAtAnswerTo("unique text");
  int calls = 0;
  ASSERT_OK(objects->Update(id,
                            [&](std::string_view) -> absl::StatusOr<std::string> {
                              ++calls;
                              return R"({"n":"unique text"})";
                            },
                            {}));
  EXPECT_EQ(calls, 2);
}

TEST(Cuts, AnUpdateWhoseCommitIsLostMayHaveHappened) {
  Proxied proxied(kObjects);
  const auto objects = *proxied.backend->OpenObjects(proxied.direct.spec);
  ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create(R"({"n":0})", {.shard = kOfFirst}));
  proxied.proxy.CutAtAnswerTo("COMMIT");
  EXPECT_THAT(
      objects->Update(id, [](std::string_view) -> absl::StatusOr<std::string> { return R"({"n":1})"; }, {}),
      FailsWith(kUnavailable, "may or may not have happened"));
}

TEST(Cuts, ASnapshotWhoseEndIsLostIsNoWriteInDoubt) {
  Proxied proxied(kObjects);
  mysql::Fleet& fleet = proxied.backend->fleet();
  const auto read = [](mysql::Connection& connection) {
    mysql::Transaction snapshot(connection, mysql::Transaction::Kind::kSnapshot);
    snapshot.Commit();
    return absl::OkStatus();
  };
  const auto run = [&] { return fleet.Run(ShardSpace::kId, kOfFirst, mysql::Repeat::kAlways, read); };
  ASSERT_OK(run());
  proxied.proxy.CutAtAnswerTo("COMMIT", /*for_good=*/true);
  const absl::Status lost = run();
  EXPECT_THAT(lost, FailsWith(kUnavailable, ""));
  EXPECT_FALSE(IsInDoubt(lost)) << lost;
  EXPECT_TRUE(proxied.proxy.HasCut());
}

/// A row on a shard of the first host.
std::string RowOfFirst() {
  for (int i = 0;; ++i) {
    std::string row = "row" + std::to_string(i);
    if (ModShard(row, TestFleet::kShards) < 8) return row;
  }
}

TEST(Cuts, APutWhoseCommitIsLostIsNotPutTwice) {
  Proxied proxied({.name = "events", .max_versions = 0});
  const auto rows = *proxied.backend->OpenRows(proxied.direct.spec);
  const std::string row = RowOfFirst();
  ASSERT_OK(PutCell(*rows, row, "warm", "v"));
  proxied.proxy.CutAtAnswerTo("COMMIT");
  const CellWrite cell{"x", "v", std::nullopt};
  ASSERT_OK_AND_ASSIGN(const PutResult put, rows->Put(row, {&cell, 1}, {}));
  EXPECT_TRUE(proxied.proxy.HasCut());
  EXPECT_EQ(Read(*proxied.direct.rows, row, {.columns = {{"x"}}, .versions = 9}),
            "x@" + std::to_string(*put.timestamp) + "=v");
  // The same holds for a batch and for a conditional put.
  proxied.proxy.CutAtAnswerTo("COMMIT");
  const RowWrite write{row, {&cell, 1}, {}};
  ASSERT_OK(rows->PutMany({&write, 1})[0]);
  EXPECT_EQ(rows->Get(row, {.columns = {{"x"}}, .versions = 9}, std::nullopt)->items[0].cells.size(), 2u);
  proxied.proxy.CutAtAnswerTo("COMMIT");
  EXPECT_OK(PutCell(*rows, row, "y", "v", std::nullopt, {.condition = Condition{.column = "y"}}));
  EXPECT_TRUE(proxied.proxy.HasCut());
}

/// Sets the clock of the row's shard far ahead, so that the next timestamps do not depend on the time.
void SetClockAhead(const std::string& row) {
  const std::string shard = mysql::DatabaseName(ShardSpace::kMod, ModShard(row, TestFleet::kShards));
  std::string values;
  for (uint32_t slot = 0; slot < mysql::RowWriter::kClockSlots; ++slot) {
    values += (slot == 0 ? "(" : ", (") + std::to_string(slot) + ", 4000000000000)";
  }
  SharedFleet().server(0).Run("REPLACE INTO " + shard + ".`kv$clock` VALUES " + values);
}

void ResetClock(const std::string& row) {
  SharedFleet().server(0).Run("DELETE FROM " +
                              mysql::DatabaseName(ShardSpace::kMod, ModShard(row, TestFleet::kShards)) +
                              ".`kv$clock`");
}

TEST(Cuts, APutThatWasRolledBackIsPutAgain) {
  Proxied proxied({.name = "events", .max_versions = 0});
  const auto rows = *proxied.backend->OpenRows(proxied.direct.spec);
  const std::string row = RowOfFirst();
  ASSERT_OK(PutCell(*rows, row, "warm", "v"));
  proxied.proxy.CutBefore("COMMIT");
  const CellWrite cell{"x", "mine", std::nullopt};
  ASSERT_OK_AND_ASSIGN(const PutResult put, rows->Put(row, {&cell, 1}, {}));
  EXPECT_TRUE(proxied.proxy.HasCut());
  EXPECT_EQ(Read(*proxied.direct.rows, row, {.columns = {{"x"}}, .versions = 9}),
            "x@" + std::to_string(*put.timestamp) + "=mine");
}

TEST(Cuts, AnothersPutOfTheSameTimeIsNotTakenForTheOneThatWasLost) {
  Proxied proxied({.name = "events", .max_versions = 0});
  const auto rows = *proxied.backend->OpenRows(proxied.direct.spec);
  const std::string row = RowOfFirst();
  ASSERT_OK(PutCell(*rows, row, "warm", "v"));
  SetClockAhead(row);
  const auto other = [&] { EXPECT_OK(PutCell(*proxied.direct.rows, row, "x", "other")); };
  // The put is made alone, in a batch, and with a condition that holds for only one of the two.
  proxied.proxy.CutBefore("COMMIT", other);
  EXPECT_THAT(PutCell(*rows, row, "x", "mine"), FailsWith(kUnavailable, "may or may not have happened"));
  EXPECT_EQ(
      proxied.direct.rows->Get(row, {.columns = {{"x"}}, .versions = 9}, std::nullopt)->items[0].cells.size(),
      1u);
  proxied.proxy.CutBefore("COMMIT", other);
  const CellWrite cell{"x", "mine", std::nullopt};
  const RowWrite write{row, {&cell, 1}, {}};
  const auto batch = rows->PutMany({&write, 1});
  EXPECT_THAT(batch[0], FailsWith(kUnavailable, "may or may not have happened"));
  EXPECT_TRUE(IsInDoubt(batch[0].status()));
  proxied.proxy.CutBefore("COMMIT", [&] {
    EXPECT_OK(PutCell(*proxied.direct.rows, row, "lock", "v", std::nullopt,
                      {.condition = Condition{.column = "lock"}}));
  });
  const absl::Status lock =
      PutCell(*rows, row, "lock", "v", std::nullopt, {.condition = Condition{.column = "lock"}});
  EXPECT_FALSE(lock.ok()) << "both have the lock";
  EXPECT_TRUE(IsInDoubt(lock)) << lock;
  ResetClock(row);
}

TEST(Cuts, WhatWasDeletedSinceIsNotPutAgain) {
  Proxied proxied({.name = "events", .max_versions = 0});
  const auto rows = *proxied.backend->OpenRows(proxied.direct.spec);
  const std::string row = RowOfFirst();
  ASSERT_OK(PutCell(*rows, row, "warm", "v"));
  ASSERT_OK(PutCell(*rows, row, "warm", "v", 1));
  const auto remove = [&] { EXPECT_OK(proxied.direct.rows->Delete(row, {})); };
  // The put is known to have been committed all the same.
  proxied.proxy.CutAtAnswerTo("COMMIT", false, remove);
  EXPECT_OK(PutCell(*rows, row, "x", "v"));
  EXPECT_EQ(Read(*proxied.direct.rows, row), "");
  proxied.proxy.CutAtAnswerTo("COMMIT", false, remove);
  const CellWrite cell{"x", "v", std::nullopt};
  const RowWrite write{row, {&cell, 1}, {}};
  EXPECT_OK(rows->PutMany({&write, 1})[0]);
  EXPECT_EQ(Read(*proxied.direct.rows, row), "");
  // Nothing tells whether a put with a timestamp of its own was committed.
  proxied.proxy.CutAtAnswerTo("unique text", false, remove);
  EXPECT_THAT(PutCell(*rows, row, "x", "unique text", 5),
              FailsWith(kUnavailable, "may or may not have happened"));
  EXPECT_EQ(Read(*proxied.direct.rows, row), "");
  proxied.proxy.CutAtAnswerTo("unique text", false, remove);
  const CellWrite timed{"x", "unique text", 5};
  const RowWrite timed_write{row, {&timed, 1}, {}};
  EXPECT_TRUE(IsInDoubt(rows->PutMany({&timed_write, 1})[0].status()));
  EXPECT_EQ(Read(*proxied.direct.rows, row), "");
}

TEST(Cuts, AMappingThatWasRemovedSinceIsNotAddedAgain) {
  Proxied proxied({.name = "likes", .shape = Shape::kMappings});
  const auto mappings = *proxied.backend->OpenMappings(proxied.direct.spec);
  const uint64_t from = ObjectId::Make(kOfFirst, 1, 1)->value();
  constexpr uint64_t kTo = 0x1122334455667788;
  const std::string bytes = "\x88\x77\x66\x55\x44\x33\x22\x11";
  for (const std::optional<uint64_t> sequence : {std::optional<uint64_t>(), std::optional<uint64_t>(7)}) {
    ASSERT_OK(mappings->Add(from, 1, sequence));
    ASSERT_OK(mappings->Remove(from, 1));
    proxied.proxy.CutAtAnswerTo(bytes, false,
                                [&] { EXPECT_TRUE(*proxied.direct.mappings->Remove(from, kTo)); });
    const absl::Status added = mappings->Add(from, kTo, sequence);
    EXPECT_TRUE(IsInDoubt(added)) << added;
    EXPECT_TRUE(proxied.proxy.HasCut());
    EXPECT_EQ(*proxied.direct.mappings->Count(from), 0u);
  }
}

TEST(Cuts, ACommitThatTheServerCallsFailedMayHaveHappened) {
  Proxied proxied(kObjects);
  const auto objects = *proxied.backend->OpenObjects(proxied.direct.spec);
  ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create(R"({"n":0})", {.shard = kOfFirst}));
  // A server does not fail with "Got error 5 during COMMIT" on demand, so the proxy answers that. The server
  // has committed.
  const auto error_packet = [](uint16_t code, const std::string& text) {
    const std::string body =
        std::string("\xFF") + static_cast<char>(code & 0xFF) + static_cast<char>(code >> 8) + "#HY000" + text;
    return std::string(1, static_cast<char>(body.size())) + std::string("\0\0\x01", 3) + body;
  };
  for (const uint16_t code : {1180, 1026, 1105}) {
    proxied.proxy.ReplaceAnswerTo("COMMIT", error_packet(code, "Got error 5 during COMMIT"));
    const absl::Status updated =
        objects->Update(id, [](std::string_view) -> absl::StatusOr<std::string> { return R"({"n":1})"; }, {})
            .status();
    EXPECT_TRUE(proxied.proxy.HasCut());
    EXPECT_TRUE(IsInDoubt(updated)) << updated;
  }
  // If the statement is its own transaction, only some errors are those of a commit.
  proxied.proxy.ReplaceAnswerTo(kCommitOfCreate, error_packet(1180, "Got error 5 during COMMIT"));
  const absl::Status created = objects->Create(R"({"a":"unique text"})", {.shard = kOfFirst}).status();
  EXPECT_TRUE(IsInDoubt(created)) << created;
  proxied.proxy.ReplaceAnswerTo("unique text", error_packet(1366, "Incorrect string value"));
  const absl::Status refused = objects->Create(R"({"a":"unique text"})", {.shard = kOfFirst}).status();
  EXPECT_FALSE(refused.ok());
  EXPECT_FALSE(IsInDoubt(refused)) << refused;
}

TEST(Cuts, APutThatCannotBeRepeatedMayHaveHappened) {
  Proxied proxied({.name = "events", .max_versions = 0});
  const auto rows = *proxied.backend->OpenRows(proxied.direct.spec);
  const std::string row = RowOfFirst();
  ASSERT_OK(PutCell(*rows, row, "warm", "v", 1));
  proxied.proxy.CutAtAnswerTo("unique text", /*for_good=*/true);
  EXPECT_THAT(PutCell(*rows, row, "x", "unique text", 5),
              FailsWith(kUnavailable, "may or may not have happened"));
  EXPECT_EQ(Read(*proxied.direct.rows, row, {.columns = {{"x"}}}), "x@5=unique text");
}

TEST(Cuts, AConnectionThatIsLostWhileAMissingTableIsLookedForIsNotUsedAgain) {
  auto options = TestFleet::Options();
  options.pool.check_after_ms = 600'000;
  Proxied proxied(kObjects, options);
  const auto objects = *proxied.backend->OpenObjects(proxied.direct.spec);
  ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create("{}", {.shard = kOfFirst}));
  SharedFleet().server(0).Run("RENAME TABLE db00000.pins TO db00000.away");
  proxied.proxy.CutBefore("information_schema.schemata");
  EXPECT_THAT(objects->Get(id, {}), FailsWith(kUnavailable, ""));
  EXPECT_TRUE(proxied.proxy.HasCut());
  SharedFleet().server(0).Run("RENAME TABLE db00000.away TO db00000.pins");
  // On a dead connection this would be in doubt.
  EXPECT_OK(objects->Create("{}", {.shard = kOfFirst}));
}

TEST(Cuts, ASlowNetworkIsOnlySlow) {
  Proxied proxied({.name = "events", .max_versions = 0});
  const auto rows = *proxied.backend->OpenRows(proxied.direct.spec);
  proxied.proxy.Delay(5);
  const std::string row = RowOfFirst();
  for (int i = 0; i < 10; ++i) ASSERT_OK(PutCell(*rows, row, "x", "v"));
  EXPECT_EQ(rows->Get(row, {.versions = 99}, std::nullopt)->items[0].cells.size(), 10u);
}

TEST(Cuts, AHalfOpenConnectionTimesOutAndTheNextIsGood) {
  auto options = TestFleet::Options();
  options.pool.read_timeout_s = 1;
  options.pool.connect_timeout_s = 1;
  Proxied proxied(kObjects, options);
  ASSERT_OK_AND_ASSIGN(const uint64_t id, proxied.direct.objects->Create(R"({"n":1})", {.shard = kOfFirst}));
  const auto objects = *proxied.backend->OpenObjects(proxied.direct.spec);
  ASSERT_OK(objects->Get(id, {}));
  proxied.proxy.Stall();
  const absl::Status stalled = objects->Get(id, {}).status();
  EXPECT_TRUE(absl::IsUnavailable(stalled) || absl::IsDeadlineExceeded(stalled)) << stalled;
  proxied.proxy.Flow();
  EXPECT_TRUE(Eventually([&] { return objects->Get(id, {}).ok(); }));
}

}  // namespace
}  // namespace kvstore::testing
