#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/mysql/changes/log_position.h"
#include "catalog/file_catalog.h"
#include "router/router.h"
#include "tests/backends/mysql/tables_of_rows.h"
#include "tests/backends/mysql/test_fleet.h"
#include "tests/support/eventually.h"
#include "tests/support/random.h"
#include "tests/support/replica.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// The changes of datasets on real servers, read from their binary logs: what a follower has is what the
/// dataset has.
namespace kvstore::testing {
namespace {

const std::vector<std::string> kLogs = {"--log-bin=binlog", "--binlog-format=ROW", "--gtid-strict-mode=ON",
                                        "--sync-binlog=1", "--log-slave-updates"};
const bool kShared = ShareFleet(kLogs);

constexpr auto kOutOfRange = absl::StatusCode::kOutOfRange;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr uint64_t kDay = 86'400'000;

/// A store on the shared fleet. Its backend is replaced when it is opened again.
class MySqlChangesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KV_SKIP_ON_MYSQL("the change stream");
    SharedFleet().Clear();
    Open();
  }

  void Open(const mysql::MySqlOptions& options = TestFleet::Options()) {
    store_.reset();
    auto backend = SharedFleet().Open(options);
    ASSERT_OK(backend);
    backend_ = backend->get();
    Router::Backends backends;
    backends.emplace("mysql", *std::move(backend));
    auto store = Router::Open(std::make_unique<FileCatalog>(dir_ / "catalog"), std::move(backends), "mysql");
    ASSERT_OK(store);
    store_ = *std::move(store);
  }

  void Create(DatasetSpec spec) {
    spec.keep_changes_ms = kDay;
    ASSERT_OK(store_->CreateDataset(spec));
  }
  absl::Status Put(const std::string& dataset, const std::string& row, const std::string& column,
                   const std::string& value) {
    const CellWrite cell{column, value, std::nullopt};
    return store_->PutRow(dataset, row, {&cell, 1}, {}).status();
  }
  /// Follows until everything was told that was written before.
  void Follow(const std::string& dataset, Replica& replica, std::string& token, uint32_t limit = 100) {
    ASSERT_OK(replica.Follow(*store_, dataset, token, limit));
  }
  /// Returns a row that is on this server.
  static std::string RowOn(size_t server) {
    for (int i = 0;; ++i) {
      const std::string row = fmt::format("row{}", i);
      if (&ServerOf(row) == &SharedFleet().server(server)) return row;
    }
  }
  void ExpectEqual(const std::string& dataset, const Replica& replica) {
    const auto there = Replica::Of(*store_, dataset);
    ASSERT_OK(there);
    EXPECT_EQ(replica.columns.size(), there->columns.size());
    EXPECT_TRUE(replica == *there);
  }

  const TempDir dir_;
  std::unique_ptr<Router> store_;
  MySqlBackend* backend_ = nullptr;
};

TEST_F(MySqlChangesTest, EachShapeIsToldAsItIsNow) {
  Create({.name = "rows", .max_versions = 2});
  Create({.name = "pins", .shape = Shape::kObjects, .type = 7});
  Create({.name = "links", .shape = Shape::kMappings});
  ASSERT_OK(Put("rows", "user:7", "click", "pin:3"));
  ASSERT_OK(Put("rows", "user:7", "view", "pin:4"));
  ASSERT_OK(store_->DeleteRow("rows", "user:7", {.columns = std::vector<std::string>{"click"}}));
  const auto id = store_->CreateObject("pins", R"({"a": 1})", {});
  ASSERT_OK(id);
  const auto gone = store_->CreateObject("pins", R"({"a": 2})", {});
  ASSERT_OK(gone);
  ASSERT_OK(store_->DeleteObject("pins", *gone, true));
  ASSERT_OK(store_->AddMapping("links", *id, 5, 17));
  ASSERT_OK(store_->AddMapping("links", *id, 6, 18));
  ASSERT_OK(store_->RemoveMapping("links", *id, 6).status());
  for (const std::string dataset : {"rows", "pins", "links"}) {
    Replica replica;
    std::string token;
    Follow(dataset, replica, token);
    ExpectEqual(dataset, replica);
    EXPECT_EQ(replica.columns.size() + replica.objects.size() + replica.mappings.size(), 1u) << dataset;
  }
}

TEST_F(MySqlChangesTest, ATokenGoesOnBehindEachChangeInAnyProcess) {
  Create({.name = "rows"});
  std::string token;
  Replica replica;
  for (int i = 0; i < 30; ++i) ASSERT_OK(Put("rows", fmt::format("r{}", i % 7), fmt::format("c{}", i), "v"));
  std::string from(kChangesFromBegin);
  int told = 0;
  for (;;) {
    // A page of one, and each by another process.
    if (told % 10 == 5) Open();
    const auto page = store_->ReadChanges("rows", from, {.limit = 1});
    ASSERT_OK(page);
    for (const Change& change : page->changes) {
      replica.Apply(change);
      from = change.token;
      ++told;
    }
    if (!page->changes.empty()) continue;
    from = page->token;
    if (page->complete_until_ms != 0) break;
  }
  EXPECT_GE(told, 30) << "and perhaps what is in the log of an earlier dataset of this name";
  ExpectEqual("rows", replica);
}

TEST_F(MySqlChangesTest, FromNowHasWhatIsWrittenSince) {
  Create({.name = "rows"});
  ASSERT_OK(Put("rows", "before", "c", "v"));
  const auto page = store_->ReadChanges("rows", kChangesFromNow, {});
  ASSERT_OK(page);
  EXPECT_TRUE(page->changes.empty());
  std::string token = page->token;
  ASSERT_OK(Put("rows", "behind", "c", "v"));
  Replica replica;
  Follow("rows", replica, token);
  EXPECT_EQ(replica.columns.size(), 1u);
  EXPECT_TRUE(replica.columns.contains({"behind", "c"}));
}

TEST_F(MySqlChangesTest, TwoDatasetsOnAServerDoNotMix) {
  Create({.name = "one"});
  Create({.name = "one_more"});
  Create({.name = "links", .shape = Shape::kMappings});
  ASSERT_OK(Put("one", "r", "c", "1"));
  ASSERT_OK(Put("one_more", "r", "c", "2"));
  ASSERT_OK(store_->AddMapping("links", 1, 2, 3));
  Replica replica;
  std::string token;
  Follow("one", replica, token);
  ExpectEqual("one", replica);
  const auto other = store_->ReadChanges("one_more", token, {});
  EXPECT_THAT(other, FailsWith(absl::StatusCode::kInvalidArgument, ""));
}

TEST_F(MySqlChangesTest, ALargeTransactionComesInParts) {
  Create({.name = "rows", .max_versions = 0});
  constexpr int kColumns = 3'000;
  std::vector<std::string> names;
  std::vector<CellWrite> cells;
  for (int i = 0; i < kColumns; ++i) names.push_back(fmt::format("column{:06}", i));
  for (const std::string& name : names) cells.push_back({name, "v", std::nullopt});
  ASSERT_OK(store_->PutRow("rows", "large", cells, {}).status());
  Replica replica;
  std::string token;
  Follow("rows", replica, token);
  EXPECT_EQ(replica.columns.size(), size_t{kColumns});
  const std::string behind = token;
  ASSERT_OK(store_->DeleteRow("rows", "large", {}));
  ASSERT_OK(Put("rows", "large", "column000017", "new"));
  // By the thread that all share, and by a connection of its own, which is parked or made anew.
  for (const bool reopens : {false, true}) {
    Replica parts = replica;
    token = behind;
    size_t pages = 0;
    for (;; ++pages) {
      if (reopens && pages % 3 == 0) Open();
      const auto page = store_->ReadChanges("rows", token, {.limit = 700});
      ASSERT_OK(page);
      EXPECT_LE(page->changes.size(), 700u);
      for (const Change& change : page->changes) parts.Apply(change);
      token = page->token;
      if (page->complete_until_ms != 0) break;
    }
    EXPECT_GE(pages, 4u);
    ExpectEqual("rows", parts);
  }
}

TEST_F(MySqlChangesTest, AFollowerIsLikeTheDatasetThoughServersAreKilled) {
  Create({.name = "rows", .max_versions = 3});
  Random random(Seed("mysql changes"));
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> written{0};
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 3; ++writer) {
    writers.emplace_back([&, mine = Random(random.Next())]() mutable {
      while (!stop) {
        const std::string row = fmt::format("r{}", mine.Below(40));
        const std::string column = fmt::format("c{}", mine.Below(5));
        const bool done = mine.OneIn(10) ? store_->DeleteRow("rows", row, {}).ok()
                                         : Put("rows", row, column, std::to_string(mine.Next())).ok();
        if (done) ++written;
      }
    });
  }
  Replica replica;
  std::string token;
  std::atomic<bool> followed{false};
  std::thread follower([&] {
    while (!followed) {
      const absl::Status status = replica.Follow(*store_, "rows", token, 50);
      EXPECT_TRUE(status.ok() || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) << status;
    }
  });
  for (int kill = 0; kill < 4; ++kill) {
    const uint64_t before = written;
    EXPECT_TRUE(Eventually([&] { return written > before + 300; }));
    MariaDbServer& server = SharedFleet().server(kill % 2);
    server.Kill();
    server.Start();
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
  followed = true;
  follower.join();
  EXPECT_TRUE(Eventually([&] { return replica.Follow(*store_, "rows", token).ok(); }));
  ExpectEqual("rows", replica);
  EXPECT_GT(backend_->changes().pages().shared, 0u);
}

TEST_F(MySqlChangesTest, ASnapshotAndWhatFollowsHaveNoHoleInBetween) {
  Create({.name = "rows", .max_versions = 1});
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    Random random(Seed("mysql snapshot"));
    for (int i = 0; !stop; ++i) {
      EXPECT_OK(Put("rows", fmt::format("r{}", random.Below(100)), "c", std::to_string(i)));
    }
  });
  for (int round = 0; round < 5; ++round) {
    const auto begin = store_->ReadChanges("rows", kChangesFromNow, {.limit = 1});
    ASSERT_OK(begin);
    auto replica = Replica::Of(*store_, "rows");
    ASSERT_OK(replica);
    std::string token = begin->token;
    Follow("rows", *replica, token);
    if (round == 4) {
      stop = true;
      writer.join();
      Follow("rows", *replica, token);
      ExpectEqual("rows", *replica);
    }
  }
}

TEST_F(MySqlChangesTest, WhatIsOnMyRocksIsToldOnceItIsThere) {
  Create({.name = "rows", .max_versions = 1, .engine = "myrocks"});
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> written{0};
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 3; ++writer) {
    writers.emplace_back([&, writer] {
      for (int i = 0; !stop; ++i) {
        EXPECT_OK(Put("rows", fmt::format("r{}-{}", writer, i % 50), "c", std::to_string(i)));
        ++written;
      }
    });
  }
  Replica replica;
  std::string token;
  while (written < 1'000) Follow("rows", replica, token);
  stop = true;
  for (std::thread& writer : writers) writer.join();
  Follow("rows", replica, token);
  ExpectEqual("rows", replica);
}

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
  const DatasetSpec spec{.name = "rows", .keep_changes_ms = kDay};
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
      store_->CreateDataset({.name = "more", .keep_changes_ms = kDay}),
      FailsWith(kFailedPrecondition, "binlog_format: is MIXED at " + SharedFleet().server(1).address()));
  EXPECT_THAT(store_->ReadChanges("rows", kChangesFromBegin, {}),
              FailsWith(kFailedPrecondition, "binlog_format"));
  ASSERT_OK(store_->CreateDataset({.name = "without"}));
  EXPECT_THAT(store_->AlterDataset("without", {.keep_changes_ms = kDay}),
              FailsWith(kFailedPrecondition, "binlog_format"));
  SharedFleet().server(1).Run("SET GLOBAL binlog_format = 'ROW'");
  EXPECT_OK(store_->AlterDataset("without", {.keep_changes_ms = kDay}));
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

TEST_F(MySqlChangesTest, ATokenOfAnotherBackendIsRefused) {
  Create({.name = "rows"});
  const DatasetSpec spec = *store_->GetDataset("rows");
  EXPECT_THAT(backend_->ReadChanges(spec, std::string(20, '\0'), {}),
              FailsWith(kOutOfRange, "another backend"));
}

TEST_F(MySqlChangesTest, ManyFollowersShareOneReader) {
  Create({.name = "rows"});
  std::vector<std::string> tokens(20);
  std::vector<Replica> replicas(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto page = store_->ReadChanges("rows", kChangesFromNow, {});
    ASSERT_OK(page);
    tokens[i] = page->token;
  }
  for (int i = 0; i < 50; ++i) {
    ASSERT_OK(Put("rows", fmt::format("r{}", i), "c", "2"));
    Follow("rows", replicas[i % tokens.size()], tokens[i % tokens.size()]);
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    Follow("rows", replicas[i], tokens[i]);
    ExpectEqual("rows", replicas[i]);
  }
  EXPECT_EQ(backend_->changes().pages().own, 0u);
  // Only the threads that read, one for each host, are there.
  const std::string readers = SharedFleet().server(0).Run(
      "SELECT COUNT(*) FROM information_schema.processlist WHERE command = 'Binlog Dump'");
  EXPECT_EQ(readers, "1\n");
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

TEST_F(MySqlChangesTest, ConsumersAreRefusedWhereMapsAreFiles) {
  Create({.name = "rows"});
  EXPECT_THAT(store_->SetConsumer("rows", "search", kChangesFromNow),
              FailsWith(absl::StatusCode::kUnimplemented, "noted in ZooKeeper"));
  EXPECT_THAT(store_->ListConsumers("rows"), FailsWith(absl::StatusCode::kUnimplemented, "store the token"));
  ASSERT_OK(store_->DropDataset("rows", {}));
}

}  // namespace
}  // namespace kvstore::testing
