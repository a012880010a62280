#include <rocksdb/db.h>
#include <rocksdb/sst_file_reader.h>

#include <functional>
#include <string>
#include <vector>

#include "backends/rocksdb/rows/cell_key.h"
#include "tests/backend_suite/suite.h"
#include "tests/backends/rocksdb/under_test.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// The trap in removing surplus versions by a compaction filter, which sees only the files of its compaction.
/// It would count newer versions whose tombstones are in a file outside, and drop an older version that was
/// put after the delete and is the only visible one.
namespace kvstore::testing {
namespace {

class Trap : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = OpenRocksDb(dir_.path(), {});
    ASSERT_OK(opened);
    backend_ = *std::move(opened);
    ASSERT_OK(backend_->CreateDataset(spec_));
    rows_ = *backend_->OpenRows(spec_);
    // RocksDB must not move anything by itself.
    ASSERT_TRUE(db().SetOptions(handle(), {{"disable_auto_compactions", "true"}}).ok());
  }

  rocksdb::DB& db() { return backend_->engine().db(); }
  rocksdb::ColumnFamilyHandle* handle() { return backend_->engine().FindFamily("rows")->handle; }

  /// Flushes the memtable, and returns the name of the new file.
  std::string Flush() {
    EXPECT_TRUE(db().Flush({}, handle()).ok());
    rocksdb::ColumnFamilyMetaData files;
    db().GetColumnFamilyMetaData(handle(), &files);
    // Level 0 lists its newest file first.
    return files.levels[0].files.empty() ? "" : files.levels[0].files.front().name;
  }

  /// Moves the file to a level, and returns its new name; "" if RocksDB refuses.
  std::string Move(const std::string& file, int level) {
    std::vector<std::string> outputs;
    const auto status = db().CompactFiles({}, handle(), {file}, level, -1, &outputs);
    EXPECT_TRUE(status.ok()) << status.ToString();
    if (outputs.empty()) return "";
    return outputs[0].substr(outputs[0].rfind('/'));
  }

  std::string LevelsOf() {
    rocksdb::ColumnFamilyMetaData files;
    db().GetColumnFamilyMetaData(handle(), &files);
    std::string text;
    for (const auto& level : files.levels) text += std::to_string(level.files.size());
    return text;
  }

  const TempDir dir_;
  const DatasetSpec spec_{.name = "rows", .max_versions = 2, .incarnation = 1};
  std::unique_ptr<RocksDbBackend> backend_;
  std::shared_ptr<RowStore> rows_;
};

TEST_F(Trap, ACellPutAfterTheDeleteOfNewerOnesIsNeverDropped) {
  // The bottom file has three newer versions, and a later cell so that its range covers the older timestamp.
  for (const uint64_t timestamp : {30, 20, 10}) ASSERT_OK(PutCell(*rows_, "r", "x", "newer", timestamp));
  ASSERT_OK(PutCell(*rows_, "r", "y", "other", 1));
  ASSERT_NE(Move(Flush(), 6), "");
  // The file above has their tombstones, which sort before the older cell, so its range does not cover that
  // cell.
  ASSERT_OK(rows_->Delete("r", {.columns = {{"x"}}}));
  ASSERT_NE(Move(Flush(), 5), "");
  // The top file has an older timestamp, put after the delete, and so visible.
  ASSERT_OK(PutCell(*rows_, "r", "x", "older", 5));
  const std::string older = Flush();
  ASSERT_EQ(LevelsOf(), "1000011");
  ASSERT_EQ(Read(*rows_, "r", {.versions = 9}), "x@5=older y@1=other");

  // In the worst order, the older cell is merged with the newer versions, and their tombstones stay outside.
  std::vector<std::string> outputs;
  ASSERT_NE(Move(older, 6), "");
  ASSERT_EQ(LevelsOf(), "0000011");
  EXPECT_EQ(Read(*rows_, "r", {.versions = 9}), "x@5=older y@1=other");

  // The filter suggests the column to the trimmer, which reads all that is stored, and keeps the cell.
  backend_->engine().trimmer().Drain();
  EXPECT_EQ(Read(*rows_, "r", {.versions = 9}), "x@5=older y@1=other");
  ASSERT_OK(backend_->Reclaim(spec_, nullptr));
  EXPECT_EQ(Read(*rows_, "r", {.versions = 9}), "x@5=older y@1=other");
}

TEST_F(Trap, SurplusVersionsThatACompactionMeetsAreTrimmedForGood) {
  for (uint64_t timestamp = 1; timestamp <= 50; ++timestamp)
    ASSERT_OK(PutCell(*rows_, "r", "x", "v", timestamp));
  Move(Flush(), 6);
  backend_->engine().trimmer().Drain();
  Move(Flush(), 5);
  // Two of the 50 cells are left.
  const std::unique_ptr<rocksdb::Iterator> it(db().NewIterator({}, handle()));
  int cells = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next()) ++cells;
  EXPECT_EQ(cells, 2);
  EXPECT_EQ(Read(*rows_, "r", {.versions = 9}), "x@50=v x@49=v");
}

TEST_F(Trap, EveryOrderOfCompactionsGivesTheSameAnswer) {
  // Write a few states of one column one after another, then flush and merge them in every pattern of a
  // random walk.
  Random random(Seed("orders"));
  for (int round = 0; round < 30; ++round) {
    const std::string row = "row" + std::to_string(round);
    std::string expected;
    for (int step = 0; step < 12; ++step) {
      if (random.OneIn(4)) {
        ASSERT_OK(rows_->Delete(row, {.columns = {{"x"}}}));
      } else {
        ASSERT_OK(PutCell(*rows_, row, "x", std::to_string(step), random.Below(40)));
      }
      const std::string before = Read(*rows_, row, {.versions = 9});
      for (int i = 0; i < 3; ++i) Rearrange(*backend_, spec_, random);
      ASSERT_EQ(Read(*rows_, row, {.versions = 9}), before);
    }
    const std::string before = Read(*rows_, row, {.versions = 9});
    ASSERT_OK(backend_->Reclaim(spec_, nullptr));
    ASSERT_EQ(Read(*rows_, row, {.versions = 9}), before);
  }
}

}  // namespace
}  // namespace kvstore::testing
