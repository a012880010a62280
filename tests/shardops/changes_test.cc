#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "base/metrics_sink.h"
#include "kvstore_api/connect.h"
#include "shardops/move.h"
#include "shardops/promote.h"
#include "tests/shardops/move_fixture.h"
#include "tests/support/kv_server.h"
#include "tests/support/processes.h"
#include "tests/support/random.h"
#include "tests/support/replica.h"

/// Followers of datasets on MySQL while masters are replaced and shards move: what they have is what the
/// dataset has.
namespace kvstore::testing {
namespace {

constexpr uint64_t kDay = 86'400'000;

/// Notes the gauges of consumers.
class ConsumerGauges : public MetricsSink {
 public:
  void Gauge(std::string_view name, std::string_view, const Labels& labels, double value) override {
    if (name.starts_with("kvstore_consumer_")) values[std::string(name) + " " + labels.at(1).second] = value;
  }
  void Counter(std::string_view, std::string_view, const Labels&, double) override {}
  std::map<std::string, double> values;
};

/// Two pairs of servers that log rows, with a store and a dataset on the first one.
class FollowedFleetTest : public ::testing::Test {
 protected:
  FollowedFleetTest() {
    for (MariaDbServer* server : {&first_.a(), &first_.b(), &second_.a(), &second_.b()}) {
      server->Run("SET GLOBAL binlog_format = 'ROW'");
    }
    for (MariaDbServer* server : {&first_.a(), &second_.a()}) {
      server->Run("GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO kvstore@'127.0.0.1'");
    }
    store_ = first_.OpenStore(dir_.path());
    EXPECT_OK(store_->CreateDataset({.name = "events", .max_versions = 2, .keep_changes_ms = kDay}));
    EXPECT_OK(store_->CreateDataset(
        {.name = "pins", .shape = Shape::kObjects, .type = 7, .keep_changes_ms = kDay}));
    writer_ = std::thread([this] { Write(); });
  }
  ~FollowedFleetTest() override {
    SetFailPointHook(nullptr);
    StopWriting();
  }

  void StopWriting() {
    stop_ = true;
    if (writer_.joinable()) writer_.join();
  }
  void AwaitWrites(uint64_t count) {
    const uint64_t before = written_;
    EXPECT_TRUE(Eventually([&] { return written_ > before + count; }));
  }
  /// Follows both datasets, through what may fail while hosts change.
  void Follow() {
    EXPECT_TRUE(Eventually([&] {
      absl::Status status = rows_.Follow(*store_, "events", rows_token_, 50);
      if (status.ok()) status = objects_.Follow(*store_, "pins", objects_token_, 50);
      EXPECT_TRUE(status.ok() || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) << status;
      return status.ok();
    }));
  }
  void ExpectEqual() {
    StopWriting();
    Follow();
    const auto rows = Replica::Of(*store_, "events");
    ASSERT_OK(rows);
    EXPECT_EQ(rows_.columns.size(), rows->columns.size());
    EXPECT_TRUE(rows_ == *rows);
    const auto objects = Replica::Of(*store_, "pins");
    ASSERT_OK(objects);
    EXPECT_EQ(objects_.objects.size(), objects->objects.size());
    EXPECT_TRUE(objects_ == *objects);
    EXPECT_GT(objects_.objects.size(), 0u);
  }
  /// Opens the store again, so that nothing is remembered but the tokens.
  void Reopen() {
    StopWriting();
    store_ = first_.OpenStore(dir_.path());
    stop_ = false;
    writer_ = std::thread([this] { Write(); });
  }

  const TempDir dir_;
  PairFleet first_;
  ServerPair second_{2};
  std::unique_ptr<Router> store_;
  Replica rows_;
  Replica objects_;
  std::string rows_token_;
  std::string objects_token_;

 private:
  void Write() {
    Random random(Seed("followed fleet"));
    while (!stop_) {
      const std::string row = fmt::format("r{}", random.Below(200));
      const std::string value = std::to_string(random.Next());
      const CellWrite cell{"c", value, std::nullopt};
      const bool done = random.OneIn(8) ? store_->DeleteRow("events", row, {}).ok()
                                        : store_->PutRow("events", row, {&cell, 1}, {}).ok();
      if (random.OneIn(4))
        store_->CreateObject("pins", fmt::format(R"({{"a": "{}"}})", value), {}).IgnoreError();
      if (done) ++written_;
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> written_{0};
  std::thread writer_;
};

TEST_F(FollowedFleetTest, ATokenGoesOnAfterPromotions) {
  AwaitWrites(100);
  Follow();
  AwaitWrites(100);
  ASSERT_OK(shardops::Promote(first_.fleet(), first_.host_b(), {}));
  AwaitWrites(100);
  Follow();
  Reopen();
  AwaitWrites(100);
  ASSERT_OK(shardops::Promote(first_.fleet(), first_.host_a(), {}));
  AwaitWrites(100);
  ExpectEqual();
}

TEST_F(FollowedFleetTest, ATokenGoesOnWhenSomeShardsHaveMoved) {
  AwaitWrites(100);
  Follow();
  AwaitWrites(100);
  for (const shardops::MoveRange& range : {kRows, kIds}) {
    ASSERT_OK(shardops::MoveShards(first_.fleet(), range, second_.hosts(), {.hold_writes = true}));
  }
  AwaitWrites(100);
  Follow();
  AwaitWrites(100);
  // And back, while the token knows both pairs.
  for (const shardops::MoveRange& range : {kRows, kIds}) {
    ASSERT_OK(shardops::FinishMove(first_.fleet(), range));
    ASSERT_OK(shardops::MoveShards(first_.fleet(), range, first_.hosts(), {.hold_writes = true}));
  }
  AwaitWrites(100);
  ExpectEqual();
}

TEST_F(FollowedFleetTest, NothingIsCompleteBetweenTheSwitchOfAMoveAndItsMap) {
  AwaitWrites(100);
  StopWriting();
  Follow();
  const uint64_t before = store_->ReadChanges("events", rows_token_, {})->complete_until_ms;
  EXPECT_GT(before, 0u);
  int asked = 0;
  SetFailPointHook([&](std::string_view point) {
    // The tables were renamed at the old pair, whose log says that; the map does not name the new pair yet.
    if (point != "move.applied") return;
    ++asked;
    for (int i = 0; i < 100; ++i) {
      const auto page = store_->ReadChanges("events", rows_token_, {});
      ASSERT_OK(page);
      EXPECT_TRUE(page->changes.empty());
      EXPECT_EQ(page->complete_until_ms, 0u);
    }
    EXPECT_OK(objects_.Follow(*store_, "pins", objects_token_)) << "none of its shards moves";
  });
  ASSERT_OK(shardops::MoveShards(first_.fleet(), kRows, second_.hosts(), {.hold_writes = true}));
  SetFailPointHook(nullptr);
  EXPECT_GT(asked, 0);
  ExpectEqual();
}

TEST_F(FollowedFleetTest, ATokenGoesOnWhenAllShardsHaveMoved) {
  constexpr shardops::MoveRange kAllRows{.space = ShardSpace::kMod, .first = 0, .last = 7};
  constexpr shardops::MoveRange kAllIds{.space = ShardSpace::kId, .first = 0, .last = 7};
  AwaitWrites(100);
  Follow();
  AwaitWrites(100);
  for (const shardops::MoveRange& range : {kAllRows, kAllIds}) {
    ASSERT_OK(shardops::MoveShards(first_.fleet(), range, second_.hosts(), {.hold_writes = true}));
  }
  AwaitWrites(100);
  Reopen();
  AwaitWrites(100);
  Follow();
  ASSERT_OK(shardops::Promote(first_.fleet(), second_.host_b(), {}));
  AwaitWrites(100);
  ExpectEqual();
}

TEST_F(FollowedFleetTest, ShardsThatWereAwayMeanwhileAreNoSilentGap) {
  AwaitWrites(100);
  Follow();
  // The token knows nothing of the second pair.
  ASSERT_OK(shardops::MoveShards(first_.fleet(), kRows, second_.hosts(), {.hold_writes = true}));
  AwaitWrites(100);
  ASSERT_OK(shardops::FinishMove(first_.fleet(), kRows));
  ASSERT_OK(shardops::MoveShards(first_.fleet(), kRows, first_.hosts(), {.hold_writes = true}));
  StopWriting();
  EXPECT_THAT(rows_.Follow(*store_, "events", rows_token_, 50),
              FailsWith(absl::StatusCode::kOutOfRange, "begin again with --snapshot"));
  EXPECT_OK(objects_.Follow(*store_, "pins", objects_token_, 50)) << "these shards have not moved";
}

TEST_F(FollowedFleetTest, WhatASlaveHasNotAcknowledgedIsToldWhenItHas) {
  AwaitWrites(50);
  Follow();
  // Commits wait for the slave from now on, though they are in the log.
  first_.b().Run("STOP SLAVE IO_THREAD");
  EXPECT_TRUE(Eventually(
      [&] { return first_.a().Run("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'").ends_with("\t0\n"); }));
  const auto waits = [&] {
    return first_.a().Run(
               "SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for "
               "semi-sync%'") != "0\n";
  };
  EXPECT_TRUE(Eventually(waits));
  const auto page = store_->ReadChanges("events", rows_token_, {});
  ASSERT_OK(page);
  for (const Change& change : page->changes) rows_.Apply(change);
  rows_token_ = page->token;
  // A commit that waits for the slave is not visible yet, and was not told.
  const auto there = Replica::Of(*store_, "events");
  ASSERT_OK(there);
  EXPECT_TRUE(rows_ == *there);
  EXPECT_THAT(store_->ReadChanges("events", kChangesFromNow, {}),
              FailsWith(absl::StatusCode::kUnavailable, "commits are waiting"));
  first_.b().Run("START SLAVE IO_THREAD");
  AwaitWrites(50);
  ExpectEqual();
}

TEST_F(FollowedFleetTest, KvAndServersTellThemToo) {
  StopWriting();
  const TempDir dir;
  const auto config = (dir / "kv.json").string();
  first_.WriteConfig(config);
  const auto kv = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {KV_PROGRAM, "--config", config});
    const Output output = RunProgram(words);
    EXPECT_EQ(output.code, 0) << output.err;
    return output.out;
  };
  kv({"dataset", "create", "clicks", "--max-versions", "2", "--keep-changes-ms", "1d"});
  kv({"put", "clicks", "user:7", "click=pin:3"});
  kv({"put", "clicks", "user:8", "click=pin:4"});
  kv({"delete", "clicks", "user:7", "click"});
  const auto lines = [](const std::string& text) {
    std::vector<nlohmann::json> all;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  };
  const auto told = lines(kv({"changes", "clicks"}));
  ASSERT_EQ(told.size(), 4u);
  EXPECT_TRUE(told.back().contains("complete_until"));
  const std::string token = told.back()["token"];
  EXPECT_EQ(told[0]["row"].get<std::string>().substr(0, 5), "user:");

  const auto snapshot = lines(kv({"changes", "clicks", "--snapshot"}));
  ASSERT_EQ(snapshot.size(), 2u);
  EXPECT_EQ(snapshot[0]["row"], "user:8");
  EXPECT_EQ(snapshot[0]["cells"][0]["value"], "pin:4");
  kv({"put", "clicks", "user:9", "click=pin:5"});
  const auto since =
      lines(kv({"changes", "clicks", "--from", snapshot[1]["token"], "--follow", "--limit", "1"}));
  ASSERT_GE(since.size(), 1u);
  EXPECT_EQ(since.back()["row"], "user:9");

  KvServer server(KV_PROGRAM, {"--config", config});
  const auto client = *Connect(server.address());
  const auto stream = client->WatchChanges("clicks", token);
  ASSERT_OK(stream);
  std::vector<std::string> rows;
  while (rows.size() < 2) {
    if (rows.size() == 1) {
      const CellWrite cell{"click", "v", std::nullopt};
      ASSERT_OK(client->PutRow("clicks", "user:10", {&cell, 1}, {}));
    }
    const auto page = (*stream)->Next();
    ASSERT_OK(page);
    for (const Change& change : page->changes) rows.push_back(std::get<RowChange>(change.what).row);
  }
  EXPECT_EQ(rows.front(), "user:9");
  EXPECT_EQ(rows.back(), "user:10");

  // A consumer goes on at whichever program asks.
  EXPECT_EQ(lines(kv({"changes", "clicks", "--consumer", "search", "--from", token, "--limit", "1"})).size(),
            1u);
  const auto noted = client->ListConsumers("clicks");
  ASSERT_OK(noted);
  ASSERT_EQ(noted->size(), 1u);
  EXPECT_GT(noted->front().lag_ms, 0u);
  EXPECT_EQ(lines(kv({"changes", "clicks", "--consumer", "search"})).front()["row"], "user:10");
  EXPECT_NE(kv({"consumers", "list", "clicks"}).find("search  0 ms"), std::string::npos);
  kv({"consumers", "drop", "clicks", "search"});
  EXPECT_TRUE(client->ListConsumers("clicks")->empty());
}

TEST_F(FollowedFleetTest, AConsumerStaysThroughPromotionsAndMovesAndGoesWithItsDataset) {
  AwaitWrites(50);
  Follow();
  ASSERT_OK(store_->SetConsumer("events", "copy", rows_token_));
  const auto place = [&](KVStore& store) {
    const auto consumers = store.ListConsumers("events");
    EXPECT_OK(consumers);
    EXPECT_EQ(consumers->size(), 1u);
    return consumers->empty() ? std::string() : consumers->front().token;
  };
  ASSERT_OK(shardops::Promote(first_.fleet(), first_.host_b(), {}));
  AwaitWrites(50);
  Reopen();
  EXPECT_EQ(place(*store_), rows_token_);
  EXPECT_GT(store_->ListConsumers("events")->front().lag_ms, 0u);
  EXPECT_TRUE(Eventually([&] {
    ConsumerGauges gauges;
    store_->keeper().Describe(gauges);
    return gauges.values["kvstore_consumer_lag_seconds copy"] > 0 &&
           gauges.values.contains("kvstore_consumer_lost copy");
  })) << "the metrics of the whole store, once they are measured";
  ASSERT_OK(shardops::MoveShards(first_.fleet(), kRows, second_.hosts(), {.hold_writes = true}));
  AwaitWrites(50);
  EXPECT_EQ(place(*store_), rows_token_);
  rows_token_ = place(*store_);
  ExpectEqual();
  // Another process sees it; it is where it was noted last, and nothing is after it.
  ASSERT_OK(store_->SetConsumer("events", "copy", rows_token_));
  const auto spec = store_->GetDataset("events");
  ASSERT_OK(spec);
  const auto other = first_.OpenBackend();
  EXPECT_TRUE(Eventually([&] {
    Follow();
    EXPECT_OK(store_->SetConsumer("events", "copy", rows_token_));
    const auto consumers = other->ListConsumers(*spec);
    EXPECT_OK(consumers);
    return consumers->front().lag_ms == 0;
  }));
  EXPECT_FALSE(place(*store_).empty());
  ASSERT_OK(store_->AlterDataset("events", {.keep_changes_ms = 0}));
  ASSERT_OK(store_->AlterDataset("events", {.keep_changes_ms = kDay}));
  EXPECT_TRUE(store_->ListConsumers("events")->empty()) << "they went with the keeping of changes";
  ASSERT_OK(store_->SetConsumer("events", "copy", kChangesFromNow));
  ASSERT_OK(store_->DropDataset("events", {}));
  EXPECT_TRUE(other->ListConsumers(*spec)->empty());
  ASSERT_OK(store_->CreateDataset({.name = "events", .max_versions = 2, .keep_changes_ms = kDay}));
  EXPECT_TRUE(store_->ListConsumers("events")->empty());
}

TEST_F(FollowedFleetTest, ASlaveWhoseLogWouldNotDoIsRefused) {
  StopWriting();
  const DatasetSpec more{.name = "more", .keep_changes_ms = kDay};
  for (const auto& [setting, bad, good] :
       {std::tuple("binlog_format", "'MIXED'", "'ROW'"), std::tuple("gtid_strict_mode", "OFF", "ON"),
        std::tuple("log_bin_compress", "ON", "OFF")}) {
    first_.b().Run(fmt::format("SET GLOBAL {} = {}", setting, bad));
    EXPECT_THAT(store_->CreateDataset(more),
                FailsWith(absl::StatusCode::kFailedPrecondition, first_.host_b().ToString()));
    first_.b().Run(fmt::format("SET GLOBAL {} = {}", setting, good));
  }
  EXPECT_OK(store_->CreateDataset(more));
  // One that is away is no reason.
  first_.b().Kill();
  EXPECT_OK(store_->AlterDataset("events", {.keep_changes_ms = 2 * kDay}));
}

TEST_F(FollowedFleetTest, AnOlderPlaceDoesNotReplaceANewerOne) {
  AwaitWrites(50);
  Follow();
  const std::string older = rows_token_;
  AwaitWrites(50);
  ExpectEqual();
  ASSERT_OK(store_->SetConsumer("events", "copy", rows_token_));
  ASSERT_OK(store_->SetConsumer("events", "copy", rows_token_)) << "the same";
  EXPECT_THAT(store_->SetConsumer("events", "copy", older),
              FailsWith(absl::StatusCode::kFailedPrecondition, "kv consumers drop events copy"));
  EXPECT_EQ(store_->ListConsumers("events")->front().token, rows_token_);
  // Unless that is asked for.
  ASSERT_OK(store_->DropConsumer("events", "copy"));
  ASSERT_OK(store_->SetConsumer("events", "copy", older));
  EXPECT_GT(store_->ListConsumers("events")->front().lag_ms, 0u);
  EXPECT_THAT(store_->SetConsumer("events", "copy", "yesterday"),
              FailsWith(absl::StatusCode::kInvalidArgument, "token: "));
  EXPECT_THAT(store_->DropConsumer("events", "none"), FailsWith(absl::StatusCode::kNotFound, "none"));
}

TEST_F(FollowedFleetTest, AConsumerWhoseLogWasPurgedIsLostAndBeginsAgain) {
  AwaitWrites(50);
  Follow();
  ASSERT_OK(store_->SetConsumer("events", "copy", rows_token_));
  AwaitWrites(50);
  EXPECT_FALSE(store_->ListConsumers("events")->front().token.empty());
  // The slave must have the log, too.
  EXPECT_TRUE(Eventually([&] {
    first_.a().Run("FLUSH BINARY LOGS");
    AwaitWrites(1);
    const std::string names = first_.a().Run("SHOW BINARY LOGS");
    std::string last = names.substr(names.rfind("\n", names.size() - 2) + 1);
    last.resize(last.find('\t'));
    first_.a().Run("PURGE BINARY LOGS TO '" + last + "'");
    return store_->ListConsumers("events")->front().token.empty();
  }));
  // The new token is after all that was lost.
  ASSERT_OK(store_->SetConsumer("events", "copy", kChangesFromNow));
  EXPECT_FALSE(store_->ListConsumers("events")->front().token.empty());
}

TEST_F(FollowedFleetTest, AnAccountWithoutTheRightsIsToldWhichItNeeds) {
  StopWriting();
  first_.a().Run("REVOKE REPLICATION SLAVE, BINLOG MONITOR ON *.* FROM kvstore@'127.0.0.1'");
  store_ = first_.OpenStore(dir_.path());
  EXPECT_THAT(store_->ReadChanges("events", kChangesFromBegin, {}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "BINLOG MONITOR"));
}

}  // namespace
}  // namespace kvstore::testing
