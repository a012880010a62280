#include "backends/rocksdb/engine/iterator_pool.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "tests/backends/rocksdb/under_test.h"
#include "tests/support/eventually.h"
#include "tests/support/random.h"

namespace kvstore::testing {
namespace {

class IteratorPoolTest : public ::testing::Test {
 protected:
  IteratorPoolTest() : backend_(*OpenRocksDb(dir_.path(), {})) {
    EXPECT_OK(backend_->CreateDataset({.name = "rows", .incarnation = 1}));
    family_ = backend_->engine().FindFamily("rows");
  }
  rocksdb::DB& db() { return *family_->db; }
  rocksdb::ColumnFamilyHandle* handle() { return family_->handle; }
  rocks::IteratorPool& pool() { return *family_->iterators; }
  /// Keys, twenty of which are in one row.
  static std::string Key(uint64_t i) {
    return fmt::format("r{}", i / 20) + std::string("\0\1", 2) + fmt::format("c{:02}", i % 20);
  }
  void Flush() { ASSERT_TRUE(db().Flush({}, handle()).ok()); }
  uint64_t Property(const std::string& name) {
    uint64_t value = 0;
    EXPECT_TRUE(db().GetIntProperty(handle(), name, &value));
    return value;
  }

  const TempDir dir_;
  std::unique_ptr<RocksDbBackend> backend_;
  std::shared_ptr<rocks::Family> family_;
};

TEST_F(IteratorPoolTest, ShowsWhatANewIteratorWould) {
  Random random(Seed("iterator pool"));
  constexpr uint64_t kKeys = 60;
  std::map<std::string, std::string> model;
  for (int step = 0; step < 20'000; ++step) {
    const uint64_t a = random.Below(kKeys);
    const uint64_t b = a + random.Below(20 - a % 20);  // in the same row
    switch (random.Below(40)) {
      case 0:
        Flush();
        continue;
      case 1:
        if (random.OneIn(4)) {
          ASSERT_TRUE(db().CompactRange({}, handle(), nullptr, nullptr).ok());
        }
        continue;
      case 2:
        ASSERT_TRUE(db().DeleteRange({}, handle(), Key(a), Key(b)).ok());
        model.erase(model.lower_bound(Key(a)), model.lower_bound(Key(b)));
        continue;
      case 3:
        // Write to another dataset.
        ASSERT_TRUE(db().Put({}, "other", "v").ok());
        continue;
      default:
        break;
    }
    if (random.OneIn(3)) {
      model[Key(a)] = std::to_string(step);
      ASSERT_TRUE(db().Put({}, handle(), Key(a), std::to_string(step)).ok());
    } else if (random.OneIn(6)) {
      model.erase(Key(a));
      ASSERT_TRUE(db().Delete({}, handle(), Key(a)).ok());
    }
    // Sometimes lease two at once.
    std::unique_ptr<rocks::IteratorPool::Lease> other;
    if (random.OneIn(5)) {
      other.reset(new auto(pool().Acquire(Key(0), Key(19))));
      (*other)->Seek(Key(7));
    }
    const auto it = pool().Acquire(Key(a), Key(b));
    std::map<std::string, std::string> found;
    if (random.OneIn(3)) {
      for (it->SeekForPrev(Key(b)); it->Valid(); it->Prev()) {
        found.emplace(it->key().ToString(), it->value().ToString());
      }
    } else {
      for (it->Seek(Key(a)); it->Valid(); it->Next()) {
        found.emplace(it->key().ToString(), it->value().ToString());
        if (random.OneIn(30)) break;  // leave the iterator anywhere
      }
    }
    ASSERT_TRUE(it->status().ok());
    auto expected = model.lower_bound(Key(a));
    const bool all = !it->Valid();
    if (all) {
      ASSERT_EQ(found, (std::map<std::string, std::string>(expected, model.lower_bound(Key(b))))) << step;
    } else {
      for (const auto& [key, value] : found) {
        ASSERT_EQ(key, expected->first) << step;
        ASSERT_EQ(value, expected->second) << step;
        ++expected;
      }
    }
  }
}

TEST_F(IteratorPoolTest, AWriteThatWasAnsweredIsSeen) {
  std::atomic<uint64_t> answered{0};
  std::atomic<bool> stop{false};
  std::atomic<int> stale{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 4; ++t) {
    readers.emplace_back([&] {
      while (!stop) {
        const uint64_t least = answered;
        const auto it = pool().Acquire(Key(1), Key(2));
        it->Seek(Key(1));
        const uint64_t seen = it->Valid() ? std::stoull(it->value().ToString()) : 0;
        if (seen < least) ++stale;
      }
    });
  }
  for (uint64_t i = 1; i <= 4'000; ++i) {
    EXPECT_TRUE(db().Put({}, handle(), Key(1), std::to_string(i)).ok());
    answered = i;
    if (i % 200 == 0) Flush();
    // Range tombstones in memory, next to the range that is read.
    if (i % 7 == 0) {
      EXPECT_TRUE(db().DeleteRange({}, handle(), Key(3), Key(4)).ok());
    }
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(stale, 0);
}

TEST_F(IteratorPoolTest, IdleOnesKeepNoMemoryThatWasFlushed) {
  ASSERT_TRUE(db().Put({}, handle(), Key(1), std::string(1 << 20, 'v')).ok());
  for (int i = 0; i < 100; ++i) pool().Acquire(Key(1), Key(2))->Seek(Key(1));
  std::thread([&] { pool().Acquire(Key(1), Key(2))->Seek(Key(1)); }).join();
  {
    // An iterator on lease is destroyed when it comes back.
    const auto working = pool().Acquire(Key(1), Key(2));
    working->Seek(Key(1));
    Flush();
    EXPECT_GT(Property("rocksdb.size-all-mem-tables"), 1u << 20)
        << "the leased iterator must pin the memtable";
  }
  EXPECT_TRUE(Eventually([&] {
    return Property("rocksdb.size-all-mem-tables") == Property("rocksdb.cur-size-all-mem-tables");
  }));
}

TEST_F(IteratorPoolTest, ADatasetIsDroppedAndMadeAgain) {
  ASSERT_TRUE(db().Put({}, handle(), Key(1), "old").ok());
  pool().Acquire(Key(1), Key(2))->Seek(Key(1));
  family_.reset();
  ASSERT_OK(backend_->DropDataset({.name = "rows", .incarnation = 1}));
  ASSERT_OK(backend_->CreateDataset({.name = "rows", .incarnation = 2}));
  family_ = backend_->engine().FindFamily("rows");
  const auto it = pool().Acquire(Key(1), Key(2));
  it->SeekToFirst();
  EXPECT_FALSE(it->Valid());
}

}  // namespace
}  // namespace kvstore::testing
