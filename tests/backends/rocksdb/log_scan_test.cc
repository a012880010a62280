#include "backends/rocksdb/engine/log_scan.h"

#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <fstream>
#include <memory>
#include <string>

#include "base/files.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Scans of logs that RocksDB has written, and of damaged ones.
namespace kvstore::rocks {
namespace {

constexpr int kBatches = 500;

class LogScanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    rocksdb::Options options;
    options.create_if_missing = true;
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options, (dir_ / "db").string(), &db).ok());
    const std::unique_ptr<rocksdb::DB> closed(db);
    for (int i = 0; i < kBatches; ++i) {
      // Some records have one fragment, some several.
      rocksdb::WriteBatch batch;
      ASSERT_TRUE(batch.Put("a", std::string(i % 10 == 0 ? 70'000 : 100, 'v')).ok());
      ASSERT_TRUE(batch.Delete("b").ok());
      ASSERT_TRUE(db->Write({}, &batch).ok());
    }
    for (const auto& file : std::filesystem::directory_iterator(dir_ / "db")) {
      if (file.path().extension() == ".log") bytes_ = *ReadFile(file.path());
    }
    ASSERT_GT(bytes_.size(), 3'000'000u);
  }
  LogScan Scan(const std::string& bytes) {
    std::ofstream(dir_ / "log", std::ios::binary | std::ios::trunc) << bytes;
    const auto scan = ScanLog(dir_ / "log");
    EXPECT_OK(scan);
    return scan.value_or(LogScan{});
  }

  const testing::TempDir dir_;
  std::string bytes_;
};

TEST_F(LogScanTest, AWholeLogIsReadToItsEnd) {
  const LogScan scan = Scan(bytes_);
  EXPECT_EQ(scan.size, bytes_.size());
  EXPECT_EQ(scan.good, bytes_.size());
  EXPECT_EQ(scan.changes, 2u * kBatches);
  EXPECT_FALSE(scan.damaged);
  EXPECT_THAT(ScanLog(dir_ / "none"), testing::FailsWith(absl::StatusCode::kNotFound, "none"));
}

TEST_F(LogScanTest, WhatACrashTearsIsNoDamage) {
  for (size_t size = 0; size < bytes_.size(); size += 300'007) {
    for (const size_t zeros : {0, 100, 50'000}) {
      const LogScan scan = Scan(bytes_.substr(0, size) + std::string(zeros, '\0'));
      // A record whose end is overwritten by zeros has a wrong checksum, as a damaged one has.
      if (zeros == 0) {
        EXPECT_FALSE(scan.damaged) << size;
      }
      EXPECT_LE(scan.good, size);
      EXPECT_GE(scan.good + 80'000, size);
    }
  }
}

/// A size that points past the end of the log, in a block that is there as a whole.
TEST_F(LogScanTest, ADamagedSizeIsNoTornEnd) {
  constexpr size_t kBlock = 32 << 10;
  const size_t last_whole = (bytes_.size() / kBlock - 1) * kBlock;
  std::string bytes = bytes_;
  bytes.replace(last_whole + 4, 2, "\xFF\xFF");
  ASSERT_GT(last_whole + 0xFFFF, bytes.size());
  EXPECT_TRUE(Scan(bytes).damaged);
}

TEST_F(LogScanTest, AHoleIsFoundAndWhatIsBehindIt) {
  for (size_t hole = 4096; hole + 100'000 < bytes_.size(); hole += 300'007) {
    std::string bytes = bytes_;
    bytes.replace(hole, 4096, 4096, '\0');
    const LogScan scan = Scan(bytes);
    EXPECT_TRUE(scan.damaged) << hole;
    EXPECT_LE(scan.good, hole);
    EXPECT_GT(scan.changes_behind, 0u);
    // The rest of the block is lost, and so is a record that began before it.
    EXPECT_GE(scan.changes + scan.changes_behind + 2 * (4 * 32768 / 100), 2u * kBatches);
    EXPECT_LT(scan.changes + scan.changes_behind, 2u * kBatches);
    // Cut at the good part, the log is whole.
    const LogScan cut = Scan(bytes.substr(0, scan.good));
    EXPECT_FALSE(cut.damaged);
    EXPECT_EQ(cut.changes, scan.changes);
  }
}

}  // namespace
}  // namespace kvstore::rocks
