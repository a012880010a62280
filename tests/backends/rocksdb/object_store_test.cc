#include "backends/rocksdb/objects/object_store.h"

#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include "base/big_endian.h"
#include "base/clock.h"
#include "idgen/object_id.h"
#include "tests/backends/rocksdb/under_test.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore::rocks {
namespace {

using testing::FailsWith;

class ObjectStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = testing::OpenRocksDb(dir_.path(), {});
    ASSERT_OK(opened);
    backend_ = *std::move(opened);
    ASSERT_OK(backend_->CreateDataset(spec_));
  }
  /// Makes `next` the next local ID of a shard. Must be called before the store is opened.
  void SetCounter(uint32_t shard, uint64_t next) {
    std::string value;
    AppendBigEndian(value, next);
    ASSERT_TRUE(backend_->engine()
                    .db()
                    .Put({}, backend_->engine().meta(), LocalIds::CounterKey(9, shard), value)
                    .ok());
  }

  const testing::TempDir dir_;
  const DatasetSpec spec_{.name = "objects", .shape = Shape::kObjects, .type = 7, .incarnation = 9};
  std::unique_ptr<RocksDbBackend> backend_;
};

TEST_F(ObjectStoreTest, TheLastLocalIdIsUsedAndNoneIsUsedAgain) {
  SetCounter(5, ObjectId::kMaxLocal - 1);
  ASSERT_OK_AND_ASSIGN(const auto objects, backend_->OpenObjects(spec_));
  for (const uint64_t local : {ObjectId::kMaxLocal - 1, ObjectId::kMaxLocal}) {
    ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create("{}", {.shard = 5}));
    EXPECT_EQ(ObjectId::FromValue(id)->local(), local);
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(objects->Create("{}", {.shard = 5}),
                FailsWith(absl::StatusCode::kResourceExhausted, "shard 5"));
  }
  EXPECT_OK(objects->Create("{}", {.shard = 6}));
}

TEST_F(ObjectStoreTest, AShardThatIsFullIsPassedOver) {
  SetCounter(0, ObjectId::kMaxLocal + 1);
  ASSERT_OK_AND_ASSIGN(const auto objects, backend_->OpenObjects(spec_));
  for (uint32_t i = 0; i < 2 * RocksObjectStore::kSpreadShards; ++i) {
    ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create("{}", {}));
    EXPECT_NE(ObjectId::FromValue(id)->shard(), 0u);
  }
}

TEST_F(ObjectStoreTest, RequestsAreKnownForADayAndThenForgotten) {
  Engine& engine = backend_->engine();
  constexpr uint64_t kDayMs = uint64_t{24} * 3600 * 1000;
  const auto today = static_cast<uint32_t>(WallClockMs() / kDayMs);
  const auto name = [](uint32_t day, std::string_view request_id) {
    std::string key("requests/");
    AppendBigEndian(key, uint64_t{9});
    AppendBigEndian(key, day);
    return key + std::string(request_id);
  };
  std::string id;
  AppendBigEndian(id, uint64_t{77});
  ASSERT_TRUE(engine.db().Put({}, engine.meta(), name(today - 1, "yesterday"), id).ok());
  ASSERT_TRUE(engine.db().Put({}, engine.meta(), name(today - 2, "before"), id).ok());
  ASSERT_OK_AND_ASSIGN(const auto objects, backend_->OpenObjects(spec_));
  EXPECT_EQ(*objects->Create("{}", {.request_id = "yesterday"}), 77u);
  EXPECT_NE(*objects->Create("{}", {.request_id = "before"}), 77u);
  std::string found;
  EXPECT_TRUE(engine.db().Get({}, engine.meta(), name(today - 2, "before"), &found).IsNotFound());
  EXPECT_TRUE(engine.db().Get({}, engine.meta(), name(today - 1, "yesterday"), &found).ok());
}

TEST_F(ObjectStoreTest, DamageIsFoundAndNotSkipped) {
  ASSERT_OK_AND_ASSIGN(const auto objects, backend_->OpenObjects(spec_));
  ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create("{}", {}));
  std::string key;
  AppendBigEndian(key, id);
  for (const char* damaged : {"", "short",
                              "\xFF"
                              "12345678{}"}) {
    ASSERT_TRUE(
        backend_->engine().db().Put({}, backend_->engine().FindFamily("objects")->handle, key, damaged).ok());
    EXPECT_THAT(objects->Get(id, {}), FailsWith(absl::StatusCode::kDataLoss, std::to_string(id)));
  }
}

TEST_F(ObjectStoreTest, CountersOfADroppedDatasetAreForgotten) {
  {
    ASSERT_OK_AND_ASSIGN(const auto objects, backend_->OpenObjects(spec_));
    ASSERT_OK(objects->Create("{}", {.shard = 5}));
  }
  ASSERT_OK(backend_->DropDataset(spec_));
  std::string value;
  EXPECT_TRUE(backend_->engine()
                  .db()
                  .Get({}, backend_->engine().meta(), LocalIds::CounterKey(9, 5), &value)
                  .IsNotFound());
}

TEST_F(ObjectStoreTest, WhatAMigrationContinuesFromIsBehindWhatARepairMayHaveLeftOut) {
  {
    ASSERT_OK_AND_ASSIGN(const auto objects, backend_->OpenObjects(spec_));
    ASSERT_OK(objects->Create("{}", {.shard = 500}));
  }
  ASSERT_OK(LocalIds::RaiseFloor(backend_->engine(), spec_.incarnation, /*left_out=*/1000));
  ASSERT_OK_AND_ASSIGN(const auto units, backend_->OpenUnits(spec_));
  ASSERT_OK_AND_ASSIGN(const auto next, units->NextLocalIds());
  // The other side must have the shard whose counter is stored, and need not have others, whose counters may
  // have been left out.
  ASSERT_EQ(next.shards.size(), 1u);
  ASSERT_OK_AND_ASSIGN(const auto objects, backend_->OpenObjects(spec_));
  for (const auto& [shard, floor] : {std::pair(500u, next.shards.at(500)), std::pair(3u, next.others)}) {
    ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create("{}", {.shard = shard}));
    EXPECT_GT(ObjectId::FromValue(id)->local(), 1000u);
    EXPECT_EQ(floor, ObjectId::FromValue(id)->local());
  }
}

TEST_F(ObjectStoreTest, AFloorForAllShardsIsCarriedOn) {
  ASSERT_OK_AND_ASSIGN(const auto objects, backend_->OpenObjects(spec_));
  ASSERT_OK(objects->Create("{}", {.shard = 7}));
  const auto engine = std::shared_ptr<Engine>(&backend_->engine(), [](Engine*) {});
  const auto family = engine->FindFamily(spec_.name);
  LocalIds ids(engine, family, spec_.type, std::make_shared<Mutex>());
  ASSERT_OK(ids.Next(7));
  ASSERT_OK(ids.RaiseTo({.shards = {{9, 70}}, .others = 900}));
  // The floor holds for a shard whose counter was in memory, for one that is named, and for one that nobody
  // has used.
  for (const uint32_t shard : {7u, 9u, 11u}) EXPECT_EQ(*ids.Next(shard), 900u) << shard;
  ASSERT_OK(ids.RaiseTo({.shards = {}, .others = 800}));
  EXPECT_EQ(*ids.Next(11), 901u);
  EXPECT_EQ(LocalIds::Floors(*engine, spec_.incarnation)->others, 900u);
}

TEST_F(ObjectStoreTest, LocalIdsThatEndLateReturnNothingThatOthersAreAheadOf) {
  const auto engine = std::shared_ptr<Engine>(&backend_->engine(), [](Engine*) {});
  const auto family = engine->FindFamily(spec_.name);
  const auto stores = std::make_shared<Mutex>();
  const auto make = [&] { return std::make_unique<LocalIds>(engine, family, spec_.type, stores); };
  auto ended = make();
  ASSERT_OK(ended->Next(5));
  auto ids = make();
  ASSERT_OK_AND_ASSIGN(const uint64_t assigned, ids->Next(5));
  ended.reset();
  // As after a crash of those that are in use.
  EXPECT_GT(LocalIds::Stored(*engine, spec_.incarnation)->at(5), assigned);
  ids.reset();
  EXPECT_EQ(LocalIds::Stored(*engine, spec_.incarnation)->at(5), assigned + 1)
      << "what is unused is returned";
}

TEST_F(ObjectStoreTest, PartitionsSplitWhatIsInFiles) {
  ASSERT_OK_AND_ASSIGN(const auto objects, backend_->OpenObjects(spec_));
  const auto family = backend_->engine().FindFamily(spec_.name);
  rocksdb::DB& db = backend_->engine().db();
  const std::string document = R"({"a":")" + std::string(200, 'x') + "\"}";
  // Each flush makes a file with the objects of one shard.
  for (uint32_t shard = 0; shard < 3; ++shard) {
    for (int i = 0; i < 400; ++i) ASSERT_OK(objects->Create(document, {.shard = shard}));
    ASSERT_TRUE(db.Flush({}, family->handle).ok());
  }
  ASSERT_OK_AND_ASSIGN(const auto partitions, objects->Partitions(3));
  ASSERT_GE(partitions.size(), 2u);
  size_t found = 0;
  for (const Partition& partition : partitions) {
    ASSERT_OK_AND_ASSIGN(const ObjectScanPage page, objects->Scan(partition.ids, {.limit = 10'000}));
    EXPECT_FALSE(page.objects.empty());
    found += page.objects.size();
  }
  EXPECT_EQ(found, 1200u);
}

TEST_F(ObjectStoreTest, AScanReportsWhatDoesNotDecode) {
  ASSERT_OK_AND_ASSIGN(const auto objects, backend_->OpenObjects(spec_));
  const auto family = backend_->engine().FindFamily(spec_.name);
  std::string key;
  AppendBigEndian(key, ObjectId::ValueOf(1, 7, 5));
  ASSERT_TRUE(backend_->engine().db().Put({}, family->handle, key, "?").ok());
  EXPECT_THAT(objects->Scan({}, {}), FailsWith(absl::StatusCode::kDataLoss, ""));
}

}  // namespace
}  // namespace kvstore::rocks
