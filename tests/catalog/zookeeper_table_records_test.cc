#include "catalog/zookeeper_table_records.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "coordination/zookeeper.h"
#include "tests/support/status_matchers.h"
#include "tests/support/zookeeper_server.h"

/// Records of tables that were made on first use.
namespace kvstore::testing {
namespace {

class ZooKeeperTableRecordsTest : public ::testing::Test {
 protected:
  static DatasetSpec Spec(uint64_t incarnation, std::string engine = "") {
    DatasetSpec spec;
    spec.name = "events";
    spec.incarnation = incarnation;
    spec.engine = std::move(engine);
    return spec;
  }
  ZooKeeperTableRecords Open() const { return {std::make_shared<ZooKeeper>(options_, nullptr), "/kv"}; }

  ZooKeeperServer server_;
  const ZooKeeperOptions options_{.servers = server_.address()};
  ZooKeeperTableRecords one_ = Open();
};

TEST_F(ZooKeeperTableRecordsTest, ARecordBeginsIsAddedToAndEnds) {
  EXPECT_EQ(*one_.Find(Spec(1), 5), std::nullopt);
  EXPECT_THAT(one_.Add(Spec(1), 5), FailsWith(absl::StatusCode::kNotFound, ""));
  EXPECT_EQ(*one_.Find(Spec(1), 5), std::nullopt) << "an Add begins nothing";
  EXPECT_EQ(*one_.Load(Spec(1)), std::nullopt);
  EXPECT_FALSE(*one_.HasAny());
  for (int i = 0; i < 2; ++i) ASSERT_OK(one_.Begin(Spec(1)));
  EXPECT_TRUE(*one_.HasAny());
  EXPECT_EQ(*one_.Find(Spec(1), 5), false);
  EXPECT_TRUE((*one_.Load(Spec(1)))->empty());
  const std::set<uint32_t> shards = {0, 5, 1023, 1024, 65'535};
  for (const uint32_t shard : shards) {
    EXPECT_EQ(*one_.Add(Spec(1), shard), TableRecords::Noted::kNow);
    EXPECT_EQ(*one_.Add(Spec(1), shard), TableRecords::Noted::kBefore);
  }
  ASSERT_OK(one_.Begin(Spec(1))) << "it keeps what there is";
  EXPECT_EQ(**one_.Load(Spec(1)), shards);
  for (const uint32_t shard : {4U, 6U, 1022U, 1025U, 65'534U, 30'000U}) {
    EXPECT_EQ(*one_.Find(Spec(1), shard), false) << shard;
  }
  EXPECT_EQ(*one_.Find(Spec(1), 65'535), true);
  EXPECT_EQ(*one_.Find(Spec(2), 5), std::nullopt) << "another dataset of the name";
  EXPECT_EQ(*one_.Find(Spec(1, "myrocks"), 5), std::nullopt) << "the other side of a migration";
  for (int i = 0; i < 2; ++i) ASSERT_OK(one_.End(Spec(1)));
  EXPECT_FALSE(*one_.HasAny());
  EXPECT_EQ(*one_.Find(Spec(1), 5), std::nullopt);
  EXPECT_THAT(one_.Add(Spec(1), 5), FailsWith(absl::StatusCode::kNotFound, ""));
  EXPECT_THAT(one_.Add(Spec(1), 7), FailsWith(absl::StatusCode::kNotFound, ""));
}

TEST_F(ZooKeeperTableRecordsTest, NothingIsLostOfWhatManyAddAtOnce) {
  ASSERT_OK(one_.Begin(Spec(1)));
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      ZooKeeperTableRecords mine = Open();
      for (uint32_t shard = i; shard < 60; shard += 4) EXPECT_OK(mine.Add(Spec(1), shard));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ((*one_.Load(Spec(1)))->size(), 60u);
}

TEST_F(ZooKeeperTableRecordsTest, WhatIsAddedWhileTheRecordEndsIsNotLeftBehind) {
  for (uint64_t round = 1; round <= 10; ++round) {
    ASSERT_OK(one_.Begin(Spec(round)));
    std::thread adder([&] {
      ZooKeeperTableRecords mine = Open();
      for (uint32_t shard = 0; shard < 10'000; shard += 1024) {
        const absl::Status added = mine.Add(Spec(round), shard).status();
        EXPECT_TRUE(added.ok() || absl::IsNotFound(added)) << added;
      }
    });
    EXPECT_OK(one_.End(Spec(round)));
    adder.join();
    EXPECT_EQ(*one_.Load(Spec(round)), std::nullopt);
  }
}

TEST_F(ZooKeeperTableRecordsTest, ADamagedRecordIsAnErrorThatNamesTheNode) {
  ASSERT_OK(one_.Begin(Spec(1)));
  ASSERT_OK(one_.Add(Spec(1), 5));
  ZooKeeper zookeeper(options_, nullptr);
  for (const char* const damaged : {"zz", "7G", "-1"}) {
    ASSERT_OK(zookeeper.Set("/kv/tables/events-0000000000000001", damaged, -1));
    for (const absl::Status& status :
         {one_.Find(Spec(1), 5).status(), one_.Add(Spec(1), 5).status(), one_.Load(Spec(1)).status()}) {
      EXPECT_THAT(status, FailsWith(absl::StatusCode::kFailedPrecondition,
                                    "/kv/tables/events-0000000000000001: is no record"));
    }
  }
}

}  // namespace
}  // namespace kvstore::testing
