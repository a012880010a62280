#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "backends/rocksdb/engine/file_system.h"
#include "tests/support/temp_dir.h"

/// Behaviour of RocksDB that this backend relies on, so that an upgrade that changes it fails here.
namespace kvstore::rocks {
namespace {

using testing::TempDir;

class Assumptions : public ::testing::Test {
 protected:
  void SetUp() override { Open(); }
  void Open() {
    rocksdb::Options options;
    options.create_if_missing = true;
    rocksdb::DB* db = nullptr;
    const auto status = rocksdb::DB::Open(options, dir_.path().string(), &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
  }
  std::string Get(const std::string& key) {
    std::string value;
    return db_->Get({}, key, &value).ok() ? value : "(none)";
  }

  const TempDir dir_;
  std::unique_ptr<rocksdb::DB> db_;
};

TEST_F(Assumptions, ALaterWriteOfABatchWinsOverAnEarlierOne) {
  rocksdb::WriteBatch batch;
  ASSERT_TRUE(batch.Put("k", "1").ok());
  ASSERT_TRUE(batch.Put("k", "2").ok());
  ASSERT_TRUE(db_->Write({}, &batch).ok());
  EXPECT_EQ(Get("k"), "2");
}

TEST_F(Assumptions, ARangeDeletionOfABatchSparesWhatTheBatchPutsBehindIt) {
  ASSERT_TRUE(db_->Put({}, "k1", "old").ok());
  rocksdb::WriteBatch batch;
  ASSERT_TRUE(batch.DeleteRange("k", "l").ok());
  ASSERT_TRUE(batch.Put("k1", "new").ok());
  ASSERT_TRUE(db_->Write({}, &batch).ok());
  EXPECT_EQ(Get("k1"), "new");
}

TEST_F(Assumptions, AnIteratorShowsTheMomentWhenItWasMade) {
  ASSERT_TRUE(db_->Put({}, "a", "1").ok());
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator({}));
  ASSERT_TRUE(db_->Put({}, "a", "2").ok());
  ASSERT_TRUE(db_->Put({}, "b", "2").ok());
  it->SeekToFirst();
  EXPECT_EQ(it->value().ToString(), "1");
  it->Next();
  EXPECT_FALSE(it->Valid());
}

TEST_F(Assumptions, WritingToADroppedFamilyFailsAndDoesNotCrash) {
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  ASSERT_TRUE(db_->CreateColumnFamily({}, "f", &handle).ok());
  ASSERT_TRUE(db_->Put({}, handle, "k", "v").ok());
  ASSERT_TRUE(db_->DropColumnFamily(handle).ok());
  EXPECT_FALSE(db_->Put({}, handle, "k", "v").ok());
  std::string value;
  db_->Get({}, handle, "k", &value).PermitUncheckedError();
  ASSERT_TRUE(db_->DestroyColumnFamilyHandle(handle).ok());
}

TEST_F(Assumptions, AnEmptyValueIsAValue) {
  ASSERT_TRUE(db_->Put({}, "k", "").ok());
  std::string value = "x";
  EXPECT_TRUE(db_->Get({}, "k", &value).ok());
  EXPECT_EQ(value, "");
}

TEST_F(Assumptions, FamiliesCanBeListedAndMustAllBeOpened) {
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  ASSERT_TRUE(db_->CreateColumnFamily({}, "f", &handle).ok());
  ASSERT_TRUE(db_->DestroyColumnFamilyHandle(handle).ok());
  db_.reset();
  std::vector<std::string> names;
  ASSERT_TRUE(rocksdb::DB::ListColumnFamilies({}, dir_.path().string(), &names).ok());
  EXPECT_EQ(names, (std::vector<std::string>{"default", "f"}));
  rocksdb::DB* db = nullptr;
  EXPECT_TRUE(rocksdb::DB::Open({}, dir_.path().string(), &db).IsInvalidArgument());
}

/// Returns how often this thread has called the system to read; nullopt where the system does not say.
std::optional<uint64_t> ReadCalls() {
  std::ifstream in("/proc/thread-self/io");
  std::string name;
  uint64_t count = 0;
  while (in >> name >> count) {
    if (name == "syscr:") return count;
  }
  return std::nullopt;
}

TEST_F(Assumptions, AnIteratorReadsAheadByItselfInAReadAheadScope) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.env = StoreEnv();
  options.fail_if_options_file_error = false;
  options.compression = rocksdb::kNoCompression;
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, (dir_.path() / "files").string(), &opened).ok());
  const std::unique_ptr<rocksdb::DB> db(opened);
  constexpr int kKeys = 4'000;
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(db->Put({}, fmt::format("{:06}", i), std::string(1'000, 'v')).ok());
  }
  ASSERT_TRUE(db->Flush({}).ok());
  if (!ReadCalls()) GTEST_SKIP() << "the system does not count reads";
  rocksdb::ReadOptions read;
  read.fill_cache = false;
  const auto calls_of_a_scan = [&] {
    const uint64_t before = *ReadCalls();
    const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(read));
    int keys = 0;
    for (it->SeekToFirst(); it->Valid(); it->Next()) ++keys;
    EXPECT_EQ(keys, kKeys);
    return *ReadCalls() - before;
  };
  // Four keys are a block.
  EXPECT_GE(calls_of_a_scan(), kKeys / 5);
  const ReadAheadScope read_ahead;
  EXPECT_LT(calls_of_a_scan(), kKeys / 4 / 5);
}

}  // namespace
}  // namespace kvstore::rocks
