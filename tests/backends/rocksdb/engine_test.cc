#include "backends/rocksdb/engine/engine.h"

#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <string>

#include "backend_api/unit_key.h"
#include "backends/rocksdb/engine/dirty_log.h"
#include "backends/rocksdb/rows/row_deleter.h"
#include "base/big_endian.h"
#include "tests/backend_suite/suite.h"
#include "tests/backends/rocksdb/under_test.h"

/// Tests of what only this backend has: files, tombstones, column families.
namespace kvstore::testing {
namespace {

class EngineTest : public ::testing::Test {
 protected:
  void SetUp() override { Open({}); }

  void Open(std::vector<DatasetSpec> known) {
    backend_.reset();
    auto opened = OpenRocksDb(dir_.path(), known);
    ASSERT_OK(opened);
    backend_ = *std::move(opened);
  }
  std::shared_ptr<RowStore> Rows(const DatasetSpec& spec) {
    EXPECT_OK(backend_->CreateDataset(spec));
    return *backend_->OpenRows(spec);
  }
  rocksdb::DB& db() { return backend_->engine().db(); }
  rocksdb::ColumnFamilyHandle* Handle(const std::string& name) {
    return backend_->engine().FindFamily(name)->handle;
  }
  uint64_t Property(const std::string& name, const std::string& property) {
    uint64_t value = 0;
    EXPECT_TRUE(db().GetIntProperty(Handle(name), property, &value));
    return value;
  }
  uint64_t StoredCells(const std::string& name) {
    const std::unique_ptr<rocksdb::Iterator> it(db().NewIterator({}, Handle(name)));
    uint64_t cells = 0;
    for (it->SeekToFirst(); it->Valid(); it->Next()) ++cells;
    return cells;
  }

  const TempDir dir_;
  std::unique_ptr<RocksDbBackend> backend_;
};

TEST_F(EngineTest, ValuesAreStoredByteForByteUnderTheDocumentedKey) {
  const auto rows = Rows({.name = "rows", .incarnation = 1});
  ASSERT_OK(PutCell(*rows, "user:7", "click", std::string("pin\0:3", 6), 1'700'000'000'000));
  const std::unique_ptr<rocksdb::Iterator> it(db().NewIterator({}, Handle("rows")));
  it->SeekToFirst();
  ASSERT_TRUE(it->Valid());
  EXPECT_EQ(it->key().ToString(), std::string("user:7\x00\x01"
                                              "click\x00\x01"
                                              "\xFF\xFF\xFE\x74\x30\x1A\x97\xFF",
                                              23));
  EXPECT_EQ(it->value().ToString(), std::string("pin\0:3", 6));
}

TEST_F(EngineTest, CompactionRemovesExpiredCellsFromDisk) {
  const auto rows = Rows({.name = "rows", .max_versions = 0, .ttl_ms = 3'600'000, .incarnation = 1});
  for (uint64_t timestamp = 1; timestamp <= 100; ++timestamp)
    ASSERT_OK(PutCell(*rows, "r", "x", "v", timestamp));
  ASSERT_OK(PutCell(*rows, "r", "x", "now"));
  ASSERT_EQ(StoredCells("rows"), 101u);
  ASSERT_OK(
      backend_->Reclaim({.name = "rows", .max_versions = 0, .ttl_ms = 3'600'000, .incarnation = 1}, nullptr));
  EXPECT_EQ(StoredCells("rows"), 1u);
}

TEST_F(EngineTest, SmallDeletesWritePointTombstonesAndLargeOnesARange) {
  const DatasetSpec spec{.name = "rows", .max_versions = 0, .incarnation = 1};
  const auto rows = Rows(spec);
  const auto fill = [&](const std::string& row, size_t cells) {
    for (uint64_t i = 0; i < cells; ++i) ASSERT_OK(PutCell(*rows, row, "x", "v", i));
  };
  const auto range_deletes = [&] {
    rocksdb::TablePropertiesCollection tables;
    EXPECT_TRUE(db().Flush({}, Handle("rows")).ok());
    EXPECT_TRUE(db().GetPropertiesOfAllTables(Handle("rows"), &tables).ok());
    uint64_t count = 0;
    for (const auto& [name, properties] : tables) count += properties->num_range_deletions;
    return count;
  };
  fill("small", rocks::kMaxPointDeletes);
  fill("large", rocks::kMaxPointDeletes + 1);
  ASSERT_OK(rows->Delete("small", {}));
  EXPECT_EQ(range_deletes(), 0u);
  ASSERT_OK(rows->Delete("large", {}));
  EXPECT_EQ(range_deletes(), 1u);
  EXPECT_EQ(StoredCells("rows"), 0u);
}

TEST_F(EngineTest, AMissingRowReadsNoBlock) {
  const auto rows = Rows({.name = "rows", .incarnation = 1});
  for (int i = 0; i < 2000; ++i)
    ASSERT_OK(PutCell(*rows, "row" + std::to_string(2 * i), "x", std::string(100, 'v'), 1));
  ASSERT_TRUE(db().Flush({}, Handle("rows")).ok());
  const auto read = [&] { return Property("rows", rocksdb::DB::Properties::kBlockCacheUsage); };
  const uint64_t before = read();
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(Read(*rows, "row" + std::to_string(2 * i + 1)), "");
  // The bloom filter lets about one read in a hundred through: a few of the 60 blocks of data at most, not
  // all.
  EXPECT_LT(read() - before, 60u * 4096 / 2);
}

TEST_F(EngineTest, LargeValuesAreKeptApartWhereTheDatasetSaysSo) {
  const DatasetSpec spec{.name = "rows", .ttl_ms = 3'600'000, .blob_threshold = 1000, .incarnation = 1};
  const auto rows = Rows(spec);
  ASSERT_OK(PutCell(*rows, "r", "small", std::string(999, 's')));
  ASSERT_OK(PutCell(*rows, "r", "large", std::string(100'000, 'l')));
  ASSERT_OK(PutCell(*rows, "r", "expired", std::string(100'000, 'e'), 1));
  ASSERT_TRUE(db().Flush({}, Handle("rows")).ok());
  EXPECT_GT(Property("rows", rocksdb::DB::Properties::kTotalBlobFileSize), 0u);
  ASSERT_OK_AND_ASSIGN(const RowPage page, rows->Get("r", {}, std::nullopt));
  ASSERT_EQ(page.items.size(), 2u);
  EXPECT_EQ(page.items[0].cells[0].value, std::string(100'000, 'l'));
  ASSERT_OK_AND_ASSIGN(const ReclaimResult result, backend_->Reclaim(spec, nullptr));
  EXPECT_EQ(result.expired_cells, 1u);
}

TEST_F(EngineTest, AFamilyOutsideTheCatalogIsKeptAndItsNameRefused) {
  const DatasetSpec spec{.name = "rows", .incarnation = 1};
  ASSERT_OK(PutCell(*Rows(spec), "r", "x", "v", 1));
  Open({});
  EXPECT_THAT(backend_->CreateDataset(spec), FailsWith(absl::StatusCode::kFailedPrecondition, "rows"));
  Open({spec});
  EXPECT_EQ(Read(**backend_->OpenRows(spec), "r"), "x@1=v");
}

TEST_F(EngineTest, AFamilyOutsideTheCatalogThatHasNoDataIsReplaced) {
  const DatasetSpec spec{.name = "rows", .incarnation = 1};
  ASSERT_OK(PutCell(*Rows(spec), "r", "x", "v", 1));
  ASSERT_OK(Rows(spec)->Delete("r", {}));
  Open({});
  const DatasetSpec next{.name = "rows", .incarnation = 2};
  ASSERT_OK(PutCell(*Rows(next), "r", "x", "w", 1));
  Open({next});
  EXPECT_EQ(Read(**backend_->OpenRows(next), "r"), "x@1=w");
}

TEST_F(EngineTest, ACreateThatFailedInTheMiddleCanBeTriedAgain) {
  const DatasetSpec spec{.name = "rows", .incarnation = 1};
  rocksdb::ColumnFamilyHandle* const meta = backend_->engine().meta();
  std::string state_of_migration = "migration/";
  AppendBigEndian(state_of_migration, spec.incarnation);
  ASSERT_TRUE(db().Put({}, meta, state_of_migration, "?").ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(backend_->CreateDataset(spec), FailsWith(absl::StatusCode::kDataLoss, "migration"));
    EXPECT_FALSE(backend_->engine().HasUnknownFamily(spec.name));
  }
  ASSERT_TRUE(db().Delete({}, meta, state_of_migration).ok());
  ASSERT_OK(PutCell(*Rows(spec), "r", "x", "v", 1));
  Open({spec});
  EXPECT_EQ(Read(**backend_->OpenRows(spec), "r"), "x@1=v");
}

TEST_F(EngineTest, ATrimThatWasSuggestedForADroppedDatasetSparesTheNextOfItsName) {
  const DatasetSpec before{.name = "rows", .max_versions = 1, .incarnation = 1};
  Rows(before);
  const auto dropped = backend_->engine().FindFamily("rows")->settings;
  ASSERT_OK(backend_->DropDataset(before));
  const auto rows = Rows({.name = "rows", .max_versions = 1, .incarnation = 2});
  for (const uint64_t timestamp : {1, 2}) ASSERT_OK(PutCell(*rows, "r", "x", "v", timestamp));
  std::string column;
  AppendEncoded(column, "r");
  AppendEncoded(column, "x");
  rocks::Trimmer& trimmer = backend_->engine().trimmer();
  ASSERT_TRUE(trimmer.Suggest(dropped, column));
  trimmer.Drain();
  EXPECT_EQ(StoredCells("rows"), 2u);
  ASSERT_TRUE(trimmer.Suggest(backend_->engine().FindFamily("rows")->settings, column));
  trimmer.Drain();
  EXPECT_EQ(StoredCells("rows"), 1u) << "its own suggestions are followed";
}

TEST_F(EngineTest, ADirtyLogThatEndsGivesItsFamilyBack) {
  rocks::Engine& engine = backend_->engine();
  const std::string name = rocks::DirtyLog::FamilyName("rows");
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK_AND_ASSIGN(rocksdb::ColumnFamilyHandle* const handle, engine.OpenAuxiliaryFamily(name));
    const rocks::DirtyLog log(&engine.db(), handle, /*first_id=*/1, [&](rocksdb::ColumnFamilyHandle* closed) {
      engine.CloseAuxiliaryFamily(closed);
    });
    // The first one is not dropped, as where the disk was full, so the second one opens the same family.
    EXPECT_FALSE(engine.HasUnknownFamily(name));
    if (i == 1) {
      EXPECT_OK(engine.DropAuxiliaryFamily(name, handle));
    }
  }
  EXPECT_FALSE(engine.HasUnknownFamily(name));
  Open({});
}

TEST_F(EngineTest, PartitionsSplitWhatIsInFiles) {
  const auto rows = Rows({.name = "rows", .compression = Compression::kNone, .incarnation = 1});
  ASSERT_TRUE(db().SetOptions(Handle("rows"), {{"target_file_size_base", "65536"}}).ok());
  for (int i = 0; i < 5000; ++i)
    ASSERT_OK(PutCell(*rows, "row" + std::to_string(10000 + i), "x", std::string(200, 'v'), 1));
  ASSERT_OK(backend_->Reclaim({.name = "rows", .incarnation = 1}, nullptr));
  ASSERT_OK_AND_ASSIGN(const auto partitions, rows->Partitions(4));
  EXPECT_GE(partitions.size(), 3u);
  EXPECT_LE(partitions.size(), 5u);
  for (const Partition& partition : partitions) {
    ASSERT_OK_AND_ASSIGN(const auto part, ReadRange(RocksDb(), *rows, partition.range, {}));
    EXPECT_GT(part.size(), 500u);
    EXPECT_LT(part.size(), 3000u);
  }
}

TEST_F(EngineTest, DamagedKeysAreReported) {
  const auto rows = Rows({.name = "rows", .max_versions = 0, .incarnation = 1});
  ASSERT_OK(PutCell(*rows, "a", "x", "v", 1));
  // The bytes after enc("r") are not a column and a timestamp.
  const std::string damaged = std::string("r\0\1", 3) + "no column, no end";
  ASSERT_TRUE(db().Put({}, Handle("rows"), damaged, "v").ok());
  EXPECT_THAT(rows->Get("r", {}, std::nullopt), FailsWith(absl::StatusCode::kDataLoss, ""));
  EXPECT_EQ(Read(*rows, "a"), "x@1=v");
  EXPECT_THAT(ReadRange(RocksDb(), *rows, {}, {}), FailsWith(absl::StatusCode::kDataLoss, ""));
}

}  // namespace
}  // namespace kvstore::testing
