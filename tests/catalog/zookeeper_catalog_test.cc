#include "catalog/zookeeper_catalog.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/metrics_sink.h"
#include "catalog/catalog_json.h"
#include "kvstore_api/call_scope.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zookeeper_server.h"

namespace kvstore {
namespace {

using testing::Eventually;
using testing::FailsWith;
using testing::TempDir;
using testing::ZooKeeperServer;

class ZooKeeperCatalogTest : public ::testing::Test {
 protected:
  static ZooKeeperServer& Server() {
    static ZooKeeperServer server;
    return server;
  }
  std::unique_ptr<ZooKeeperCatalog> Open(const std::filesystem::path& copy = "") {
    return std::make_unique<ZooKeeperCatalog>(
        ZooKeeperOptions{
            .servers = Server().address(), .session_timeout_ms = 4'000, .call_timeout_ms = 2'000},
        root_, copy, "test");
  }

  const std::string root_ =
      std::string("/") + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

CatalogEntry Entry(const std::string& name, uint64_t incarnation,
                   DatasetState state = DatasetState::kActive) {
  return {{.name = name, .backend = "b", .incarnation = incarnation}, state};
}

/// Finds one metric, without labels, in what a part of the store describes.
class OneMetric : public MetricsSink {
 public:
  explicit OneMetric(std::string name) : name_(std::move(name)) {}
  void Gauge(std::string_view name, std::string_view, const Labels& labels, double value) override {
    if (name == name_ && labels.empty()) value_ = value;
  }
  void Counter(std::string_view, std::string_view, const Labels&, double) override {}
  std::optional<double> value() const { return value_; }

 private:
  const std::string name_;
  std::optional<double> value_;
};

std::optional<double> Metric(const Catalog& catalog, const std::string& name) {
  OneMetric metric(name);
  catalog.Describe(metric);
  return metric.value();
}

TEST_F(ZooKeeperCatalogTest, WhatOneWritesTheOtherReads) {
  const auto one = Open();
  const auto two = Open();
  ASSERT_OK_AND_ASSIGN(CatalogContents contents, one->Load());
  EXPECT_TRUE(contents.entries.empty());
  ASSERT_OK_AND_ASSIGN(const int64_t version, one->Put(Entry("b", 2), contents.version));
  ASSERT_OK_AND_ASSIGN(const int64_t next, one->Put(Entry("a", 1), version));
  ASSERT_OK_AND_ASSIGN(contents, two->Load());
  EXPECT_EQ(contents.entries, (std::vector<CatalogEntry>{Entry("a", 1), Entry("b", 2)}));
  EXPECT_EQ(contents.version, next);
  ASSERT_OK_AND_ASSIGN(const int64_t last, two->Remove("b", next));
  EXPECT_EQ(one->Load()->entries, (std::vector<CatalogEntry>{Entry("a", 1)}));
  EXPECT_EQ(*two->Remove("b", last), last);
}

TEST_F(ZooKeeperCatalogTest, CountsTheDatasetsOfANameThatAreGone) {
  const auto one = Open();
  const auto two = Open();
  int64_t version = one->Load()->version;
  EXPECT_EQ(*one->CountDropped("a"), 0u);
  version = *one->Put(Entry("a", 1, DatasetState::kCreating), version);
  version = *one->Put(Entry("a", 1), version);
  version = *one->Put(Entry("b", 2), version);
  EXPECT_EQ(*two->CountDropped("a"), 0u);
  version = *one->Put(Entry("a", 1, DatasetState::kDropping), version);
  EXPECT_EQ(*two->CountDropped("a"), 1u) << "from now on it is about to go";
  version = *two->Put(Entry("a", 1, DatasetState::kDropping), version);
  version = *two->Remove("a", version);
  EXPECT_EQ(*one->CountDropped("a"), 1u) << "the same one still";
  version = *one->Put(Entry("a", 3, DatasetState::kCreating), version);
  version = *one->Remove("a", version);
  EXPECT_EQ(*two->CountDropped("a"), 2u) << "also one that was never finished";
  EXPECT_EQ(*two->CountDropped("b"), 0u);
}

TEST_F(ZooKeeperCatalogTest, OfTwoChangesAtOnceOneIsMade) {
  const auto one = Open();
  const auto two = Open();
  ASSERT_OK_AND_ASSIGN(const CatalogContents seen, one->Load());
  ASSERT_OK(two->Load());
  ASSERT_OK(one->Put(Entry("a", 1), seen.version));
  // Changes of different datasets conflict as well: what the second one checked may not hold any more.
  EXPECT_THAT(two->Put(Entry("b", 2), seen.version), FailsWith(absl::StatusCode::kAborted, ""));
  EXPECT_EQ(two->Load()->entries.size(), 1u);
}

TEST_F(ZooKeeperCatalogTest, ManyWritersLoseNoChange) {
  std::vector<std::thread> writers;
  for (int t = 0; t < 3; ++t) {
    writers.emplace_back([this, t] {
      const auto catalog = Open();
      for (int i = 0; i < 10; ++i) {
        absl::Status status = absl::AbortedError("");
        while (absl::IsAborted(status)) {
          const auto contents = catalog->Load();
          ASSERT_OK(contents);
          status =
              catalog->Put(Entry("d" + std::to_string(t) + "-" + std::to_string(i), 1), contents->version)
                  .status();
        }
        ASSERT_OK(status);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(Open()->Load()->entries.size(), 30u);
}

TEST_F(ZooKeeperCatalogTest, AChangeIsHeardOf) {
  const auto one = Open();
  const auto two = Open();
  std::atomic<int> heard{0};
  two->OnChange([&] { ++heard; });
  ASSERT_OK_AND_ASSIGN(CatalogContents contents, one->Load());
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(two->Load());
    const int before = heard;
    ASSERT_OK_AND_ASSIGN(contents.version, one->Put(Entry("a", i + 1), contents.version));
    EXPECT_TRUE(Eventually([&] { return heard > before; }));
  }
  two->OnChange(nullptr);
}

TEST_F(ZooKeeperCatalogTest, AProcessIsAliveUntilItsSessionEnds) {
  const auto one = Open();
  auto two = Open();
  ASSERT_OK(one->Load());
  ASSERT_OK(two->Load());
  const std::string other = two->self();
  EXPECT_TRUE(one->IsAlive(other));
  EXPECT_TRUE(one->IsAlive(one->self()));
  two.reset();
  EXPECT_TRUE(Eventually([&] { return !one->IsAlive(other); }));
  EXPECT_FALSE(one->IsAlive(""));
}

TEST_F(ZooKeeperCatalogTest, TheCopyServesWhenZooKeeperIsGone) {
  const TempDir dir;
  ZooKeeperServer server;
  const auto open = [&] {
    return std::make_unique<ZooKeeperCatalog>(
        ZooKeeperOptions{.servers = server.address(), .session_timeout_ms = 4'000, .call_timeout_ms = 3'000},
        "/kv", dir / "copy.json", "test");
  };
  {
    const auto catalog = open();
    EXPECT_THAT(catalog->LoadCopy(), FailsWith(absl::StatusCode::kNotFound, ""));
    ASSERT_OK_AND_ASSIGN(const CatalogContents contents, catalog->Load());
    ASSERT_OK(catalog->Put(Entry("a", 1), contents.version));
    ASSERT_OK(catalog->Load());
  }
  server.Stop();
  const auto catalog = open();
  EXPECT_THAT(catalog->Load(), FailsWith(absl::StatusCode::kUnavailable, server.address()));
  ASSERT_OK_AND_ASSIGN(const CatalogContents copy, catalog->LoadCopy());
  EXPECT_EQ(copy.entries, (std::vector<CatalogEntry>{Entry("a", 1)}));
  // Nothing can be changed on the basis of a copy, which may be old.
  EXPECT_THAT(catalog->Put(Entry("b", 2), copy.version), FailsWith(absl::StatusCode::kUnavailable, ""));
  server.Start();
  EXPECT_TRUE(Eventually([&] { return catalog->Load().ok(); }));
}

TEST_F(ZooKeeperCatalogTest, ACallWaitsNoLongerThanItsDeadline) {
  ZooKeeperServer server;
  ZooKeeperCatalog catalog(
      ZooKeeperOptions{.servers = server.address(), .session_timeout_ms = 4'000, .call_timeout_ms = 600'000},
      root_, "", "test");
  ASSERT_OK_AND_ASSIGN(const CatalogContents contents, catalog.Load());
  server.Stop();
  const std::string why = "which is what was left of the call's time";
  // The first attempt may fail because the connection is lost.
  EXPECT_TRUE(Eventually([&] {
    const CallScope scope(std::chrono::milliseconds(100));
    return std::string(catalog.Load().status().message()).find(why) != std::string::npos;
  }));
  const CallScope scope(std::chrono::milliseconds(100));
  EXPECT_THAT(catalog.Put(Entry("a", 1), contents.version), FailsWith(absl::StatusCode::kUnavailable, why));
  EXPECT_THAT(catalog.ledger().Begin({.what = "it", .claims = {Claim::Dataset("a", ClaimMode::kShared)}}),
              FailsWith(absl::StatusCode::kUnavailable, why));
  EXPECT_THAT(catalog.ledger().List(), FailsWith(absl::StatusCode::kUnavailable, why));
}

TEST_F(ZooKeeperCatalogTest, ItsMetricsSayWhetherItCouldBeRead) {
  ZooKeeperServer server;
  ZooKeeperCatalog catalog(
      ZooKeeperOptions{.servers = server.address(), .session_timeout_ms = 4'000, .call_timeout_ms = 3'000},
      root_, "", "test");
  const auto current = [&] { return Metric(catalog, "kvstore_catalog_current"); };
  const auto version = [&] { return Metric(catalog, "kvstore_catalog_version"); };
  EXPECT_EQ(current(), 0) << "nobody has read it yet";
  EXPECT_EQ(version(), -1);
  ASSERT_OK_AND_ASSIGN(const CatalogContents contents, catalog.Load());
  EXPECT_EQ(current(), 1);
  ASSERT_OK(catalog.Put(Entry("a", 1), contents.version));
  ASSERT_OK(catalog.Load());
  EXPECT_EQ(version(), static_cast<double>(contents.version + 1));
  server.Stop();
  {
    const CallScope scope({.deadline = CallLimits::Clock::now() - std::chrono::seconds(1)});
    EXPECT_FALSE(catalog.Load().ok());
  }
  EXPECT_EQ(current(), 1) << "a caller that had no time left says nothing about ZooKeeper";
  EXPECT_THAT(catalog.Load(), FailsWith(absl::StatusCode::kUnavailable, ""));
  EXPECT_EQ(current(), 0);
  EXPECT_EQ(version(), static_cast<double>(contents.version + 1)) << "as it was last seen";
  server.Start();
  EXPECT_TRUE(Eventually([&] { return catalog.Load().ok(); }));
  EXPECT_EQ(current(), 1);
  ZooKeeper zookeeper({.servers = server.address()}, nullptr);
  ASSERT_OK(zookeeper.Create(root_ + "/datasets/bad", "{"));
  ASSERT_OK(catalog.Load());
  EXPECT_EQ(current(), 0) << "an entry cannot be read";
}

TEST_F(ZooKeeperCatalogTest, AnEntryThatCannotBeReadIsNamedAndHidesNoOther) {
  const TempDir dir;
  const auto catalog = Open(dir / "copy.json");
  ASSERT_OK_AND_ASSIGN(CatalogContents contents, catalog->Load());
  ASSERT_OK_AND_ASSIGN(int64_t version, catalog->Put(Entry("bad", 2), contents.version));
  ASSERT_OK_AND_ASSIGN(version, catalog->Put(Entry("good", 1), version));
  ASSERT_OK(catalog->Load());
  ZooKeeper zookeeper({.servers = Server().address()}, nullptr);
  const std::string path = root_ + "/datasets/bad";
  ASSERT_OK_AND_ASSIGN(const ZooKeeperNode whole, zookeeper.Get(path, /*watch=*/false));
  for (const std::string& damaged : {std::string("{"), std::string(), EncodeCatalogEntry(Entry("good", 1))}) {
    ASSERT_OK(zookeeper.Set(path, damaged, -1));
    ASSERT_OK_AND_ASSIGN(contents, catalog->Load());
    EXPECT_EQ(contents.entries, (std::vector<CatalogEntry>{Entry("good", 1)}));
    ASSERT_EQ(contents.damaged.size(), 1u);
    EXPECT_EQ(contents.damaged[0].name, "bad");
    EXPECT_THAT(CheckReadable(contents, "bad"), FailsWith(absl::StatusCode::kDataLoss, path));
    EXPECT_OK(CheckReadable(contents, "good"));
    EXPECT_THAT(CheckAllReadable(contents, "nothing is done"),
                FailsWith(absl::StatusCode::kFailedPrecondition, "nothing is done while"));
  }
  // The others can be changed.
  EXPECT_OK(catalog->Put(Entry("good", 3), contents.version));
  ASSERT_OK(catalog->Load());
  // The copy still has what can be restored, and the others as they are now.
  ASSERT_OK_AND_ASSIGN(const CatalogContents copy, catalog->LoadCopy());
  EXPECT_EQ(copy.entries, (std::vector<CatalogEntry>{Entry("bad", 2), Entry("good", 3)}));
  ASSERT_OK(zookeeper.Set(path, whole.data, -1));
  ASSERT_OK_AND_ASSIGN(contents, catalog->Load());
  EXPECT_EQ(contents.entries.size(), 2u);
  EXPECT_OK(CheckAllReadable(contents, "nothing is done"));
}

TEST(CatalogEntryJson, Golden) {
  const CatalogEntry entry{
      {.name = "pins", .shape = Shape::kObjects, .backend = "mysql", .type = 3, .incarnation = 9},
      DatasetState::kCreating,
      "owner"};
  constexpr char kGolden[] = R"({
  "backend": "mysql",
  "blob_threshold": 0,
  "compression": "lz4",
  "dataset": "pins",
  "durability": "process",
  "incarnation": "9",
  "max_versions": 1,
  "owner": "owner",
  "shape": "objects",
  "state": "creating",
  "ttl_ms": 0,
  "type": 3
}
)";
  EXPECT_EQ(EncodeCatalogEntry(entry), kGolden);
  EXPECT_EQ(*DecodeCatalogEntry(kGolden), entry);
}

}  // namespace
}  // namespace kvstore
