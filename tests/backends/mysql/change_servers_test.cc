#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "backends/mysql/changes/changes.h"
#include "backends/mysql/changes/log_position.h"
#include "tests/backends/mysql/changes_fixture.h"
#include "tests/support/eventually.h"

/// Tests of what servers need so that their logs can be followed, and of what becomes of followers where it
/// is missing: settings, logs that were purged or lost, hosts that hang.
namespace kvstore::testing {
namespace {

constexpr auto kOutOfRange = absl::StatusCode::kOutOfRange;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

TEST_F(MySqlChangesTest, ATransactionThatTheLogDoesNotHaveIsNotBelieved) {
  Create({.name = "rows"});
  ASSERT_OK(Put("rows", "r", "c", "1"));
  const DatasetSpec spec = *store_->GetDataset("rows");
  const auto position = backend_->StartChanges(spec, ChangesFrom::kNow);
  ASSERT_OK(position);
  auto other = mysql::ChangePosition::Decode(*position);
  ASSERT_OK(other);
  // As many transactions, of which the last is another one: what a promotion with a loss leaves.
  for (auto& pair : other->pairs) {
    const auto last = pair.place.done.last();
    for (auto [domain, gtid] : last) {
      gtid.server += 100;
      pair.place.done.Add(gtid);
    }
  }
  EXPECT_THAT(backend_->ReadChanges(spec, other->Encode(), {}), FailsWith(kOutOfRange, "were lost"));
  EXPECT_OK(backend_->ReadChanges(spec, *position, {}));
}

TEST_F(MySqlChangesTest, NothingIsCompleteWhereAMasterTakesNoWrites) {
  Create({.name = "rows"});
  const auto now = store_->ReadChanges("rows", kChangesFromNow, {});
  ASSERT_OK(now);
  EXPECT_GT(now->complete_until_ms, 0u);
  // Connections that are open already know nothing of it. The new master has what is written from now on.
  SharedFleet().server(0).Run("SET GLOBAL read_only = ON");
  EXPECT_THAT(store_->ReadChanges("rows", now->token, {}).status(),
              FailsWith(absl::StatusCode::kUnavailable, "read-only"));
  SharedFleet().server(0).Run("SET GLOBAL read_only = OFF");
  EXPECT_OK(store_->ReadChanges("rows", now->token, {}));
}

TEST_F(MySqlChangesTest, SettingsThatWouldLoseChangesAreRefused) {
  const DatasetSpec spec{.name = "rows", .keep_changes_ms = kDayMs};
  MariaDbServer& server = SharedFleet().server(1);
  for (const auto& [setting, bad, good] :
       {std::tuple("gtid_strict_mode", "OFF", "ON"), std::tuple("gtid_domain_id", "1", "2"),
        std::tuple("binlog_format", "MIXED", "ROW")}) {
    server.Run(fmt::format("SET GLOBAL {} = {}", setting, bad));
    EXPECT_THAT(store_->CreateDataset(spec), FailsWith(kFailedPrecondition, setting));
    server.Run(fmt::format("SET GLOBAL {} = {}", setting, good));
  }
  EXPECT_OK(store_->CreateDataset(spec));
}

TEST_F(MySqlChangesTest, WhoIsTooLateIsTold) {
  Create({.name = "rows"});
  ASSERT_OK(Put("rows", "r", "c", "1"));
  const auto page = store_->ReadChanges("rows", kChangesFromBegin, {});
  ASSERT_OK(page);
  const std::string token = page->changes.at(0).token;
  for (int i = 0; i < 20; ++i) ASSERT_OK(Put("rows", fmt::format("r{}", i), "c", "2"));
  Open();  // no thread remembers anything
  for (size_t i = 0; i < 2; ++i) {
    MariaDbServer& server = SharedFleet().server(i);
    server.Run("FLUSH BINARY LOGS");
    // A log is purged once no checkpoint needs it.
    EXPECT_TRUE(Eventually([&] {
      const std::string names = server.Run("SHOW BINARY LOGS");
      const std::string last = names.substr(names.rfind("binlog."), 13);
      server.Run("PURGE BINARY LOGS TO '" + last + "'");
      const std::string left = server.Run("SHOW BINARY LOGS");
      return left.find("binlog.") == left.rfind("binlog.");
    }));
  }
  EXPECT_THAT(store_->ReadChanges("rows", token, {}), FailsWith(kOutOfRange, "begin again with --snapshot"));
  // The oldest that is there is what was written since.
  ASSERT_OK(Put("rows", "new", "c", "3"));
  Replica replica;
  std::string begin;
  Follow("rows", replica, begin);
  EXPECT_TRUE(replica.columns.contains({"new", "c"}));
  EXPECT_EQ(replica.columns.size(), 1u);
}

TEST_F(MySqlChangesTest, WhoIsAtTheEndGoesOnWhenLogsArePurged) {
  Create({.name = "rows"});
  const auto begin = store_->ReadChanges("rows", kChangesFromNow, {});
  ASSERT_OK(begin);
  Replica replica;
  std::string token = begin->token;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 20; ++i) ASSERT_OK(Put("rows", fmt::format("r{}", i), "c", std::to_string(round)));
    Follow("rows", replica, token);
    if (round == 1) Open();  // without a thread that remembers anything
    for (size_t i = 0; i < 2; ++i) {
      MariaDbServer& server = SharedFleet().server(i);
      server.Run("FLUSH BINARY LOGS");
      EXPECT_TRUE(Eventually([&] {
        const std::string names = server.Run("SHOW BINARY LOGS");
        server.Run("PURGE BINARY LOGS TO '" + names.substr(names.rfind("binlog."), 13) + "'");
        const std::string left = server.Run("SHOW BINARY LOGS");
        return left.find("binlog.") == left.rfind("binlog.");
      }));
    }
  }
  ASSERT_OK(Put("rows", "last", "c", "v"));
  Follow("rows", replica, token);
  ExpectEqual("rows", replica);
}

TEST_F(MySqlChangesTest, ATokenOfALogThatWasLostIsRefused) {
  Create({.name = "rows"});
  for (int i = 0; i < 20; ++i) ASSERT_OK(Put("rows", fmt::format("r{}", i), "c", "2"));
  Replica replica;
  std::string token;
  Follow("rows", replica, token);
  Open();
  for (size_t i = 0; i < 2; ++i) SharedFleet().server(i).Run("RESET MASTER");
  ASSERT_OK(Put("rows", "new", "c", "3"));
  EXPECT_THAT(store_->ReadChanges("rows", token, {}), FailsWith(kOutOfRange, "begin again with --snapshot"));
}

TEST_F(MySqlChangesTest, SettingsOfServersAreChecked) {
  Create({.name = "rows"});
  SharedFleet().server(1).Run("SET GLOBAL binlog_format = 'MIXED'");
  EXPECT_THAT(
      store_->CreateDataset({.name = "more", .keep_changes_ms = kDayMs}),
      FailsWith(kFailedPrecondition, "binlog_format: is MIXED at " + SharedFleet().server(1).address()));
  EXPECT_THAT(store_->ReadChanges("rows", kChangesFromBegin, {}),
              FailsWith(kFailedPrecondition, "binlog_format"));
  ASSERT_OK(store_->CreateDataset({.name = "without"}));
  EXPECT_THAT(store_->AlterDataset("without", {.keep_changes_ms = kDayMs}),
              FailsWith(kFailedPrecondition, "binlog_format"));
  SharedFleet().server(1).Run("SET GLOBAL binlog_format = 'ROW'");
  EXPECT_OK(store_->AlterDataset("without", {.keep_changes_ms = kDayMs}));
}

TEST_F(MySqlChangesTest, AWriteThatWasLoggedAsAStatementIsNoSilentGap) {
  Create({.name = "events"});
  const auto begin = store_->ReadChanges("events", kChangesFromNow, {});
  ASSERT_OK(begin);
  ServerOf("r").Run("SET SESSION binlog_format = 'STATEMENT'; INSERT INTO " + TableOf("r") +
                    " VALUES ('r', 'c', 1, 'v')");
  Replica replica;
  std::string token = begin->token;
  EXPECT_THAT(replica.Follow(*store_, "events", token), FailsWith(kFailedPrecondition, "binlog_format"));
  const auto again = store_->ReadChanges("events", kChangesFromNow, {});
  ASSERT_OK(again);
  EXPECT_OK(store_->ReadChanges("events", again->token, {}));
}

TEST_F(MySqlChangesTest, MinimalImagesOfRowsSuffice) {
  for (size_t i = 0; i < 2; ++i) SharedFleet().server(i).Run("SET GLOBAL binlog_row_image = 'MINIMAL'");
  Open();
  Create({.name = "rows", .max_versions = 1});
  Create({.name = "pins", .shape = Shape::kObjects, .type = 7});
  ASSERT_OK(Put("rows", "r", "c", "1"));
  ASSERT_OK(Put("rows", "s", "c", "1"));
  ASSERT_OK(store_->DeleteRow("rows", "s", {}));
  const auto id = store_->CreateObject("pins", R"({"a": 1})", {});
  ASSERT_OK(id);
  ASSERT_OK(store_->PatchObject("pins", *id, R"({"a": 2})", {}).status());
  for (const std::string dataset : {"rows", "pins"}) {
    Replica replica;
    std::string token;
    Follow(dataset, replica, token);
    ExpectEqual(dataset, replica);
  }
  for (size_t i = 0; i < 2; ++i) SharedFleet().server(i).Run("SET GLOBAL binlog_row_image = 'FULL'");
}

TEST_F(MySqlChangesTest, AHostThatHangsDelaysNoFollowerOfTheOthers) {
  // Whoever waited for the host would wait longer than the test may take.
  mysql::MySqlOptions patient = TestFleet::Options();
  patient.pool.read_timeout_s = 3'000;
  patient.pool.lifetime_s = 10'000;
  Open(patient);
  Create({.name = "events"});
  const std::string first = RowOn(0);
  const std::string second = RowOn(1);
  const auto begin = store_->ReadChanges("events", kChangesFromNow, {});
  ASSERT_OK(begin);
  Replica replica;
  std::string token = begin->token;
  ASSERT_OK(Put("events", second, "c", "1"));
  Follow("events", replica, token);
  SharedFleet().server(1).Pause();
  ASSERT_OK(Put("events", first, "c", "2"));
  EXPECT_TRUE(Eventually([&] {
    const auto page = store_->ReadChanges("events", token, {});
    EXPECT_OK(page);
    if (!page.ok()) return true;
    EXPECT_EQ(page->complete_until_ms, 0u) << "nobody knows what was written to the other one";
    for (const Change& change : page->changes) replica.Apply(change);
    token = page->token;
    return replica.columns.contains({first, "c"});
  }));
  SharedFleet().server(1).Resume();
  ASSERT_OK(Put("events", second, "c", "3"));
  EXPECT_TRUE(Eventually([&] {
    EXPECT_OK(replica.Follow(*store_, "events", token));
    const auto there = Replica::Of(*store_, "events");
    return there.ok() && replica == *there;
  }));
}

TEST_F(MySqlChangesTest, ALogThatIsNotSyncedIsAWarning) {
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  SharedFleet().server(1).Run("SET GLOBAL sync_binlog = 0");
  EXPECT_OK(store_->CreateDataset({.name = "rows", .keep_changes_ms = kDayMs}));
  SharedFleet().server(1).Run("SET GLOBAL sync_binlog = 1");
  EXPECT_OK(store_->CreateDataset({.name = "more", .keep_changes_ms = kDayMs}));
  store_.reset();  // No thread uses the logger any more.
  spdlog::set_default_logger(before);
  const std::string warning = "sync_binlog is 0 at " + SharedFleet().server(1).address();
  const size_t at = log.str().find(warning);
  EXPECT_NE(at, std::string::npos) << log.str();
  EXPECT_EQ(log.str().find("sync_binlog is", at + 1), std::string::npos)
      << "only the one, and once: " << log.str();
}

/// How many connections read the log of a server, without a file of their own.
std::string ReadersAt(size_t server) {
  return SharedFleet().server(server).Run(
      "SELECT COUNT(*) FROM information_schema.processlist WHERE command = 'Binlog Dump'");
}

TEST_F(MySqlChangesTest, WhatNobodyUsesIsClosed) {
  Create({.name = "rows"});
  const DatasetSpec spec = *store_->GetDataset("rows");
  const std::shared_ptr<mysql::Fleet> fleet(&backend_->fleet(), [](mysql::Fleet*) {});
  mysql::Changes changes(fleet, /*unused_after=*/std::chrono::milliseconds(200));
  ASSERT_OK(changes.Start(spec, ChangesFrom::kNow));
  EXPECT_EQ(changes.hosts(), 2u);
  EXPECT_TRUE(Eventually([&] { return ReadersAt(0) == "0\n" && ReadersAt(1) == "0\n"; }))
      << "a log that nobody follows is read on";
  // A host that has left the maps keeps neither a log nor a thread.
  const std::string first = SharedFleet().server(0).address();
  const std::string second = SharedFleet().server(1).address();
  EXPECT_EQ(changes.hosts(), 2u) << "hosts of the maps are kept in mind";
  SharedFleet().WriteMaps(first, first);
  EXPECT_TRUE(Eventually([&] {
    changes.CloseUnused();
    return changes.hosts() == 1;
  }));
  // It is used again as soon as it has shards again.
  SharedFleet().WriteMaps(first, second);
  EXPECT_TRUE(
      Eventually([&] { return changes.Start(spec, ChangesFrom::kNow).ok() && changes.hosts() == 2; }));
}

}  // namespace
}  // namespace kvstore::testing
