#include "backends/rocksdb/engine/change_log.h"

#include <gtest/gtest.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backends/rocksdb/units/changes.h"
#include "base/shift_clock.h"
#include "kvstore_api/limits.h"
#include "tests/backend_suite/suite.h"
#include "tests/backends/rocksdb/under_test.h"

/// The log of changes: that a reader misses nothing, whatever the order in which writes end.
namespace kvstore::testing {
namespace {

using rocks::ChangeLog;
using rocks::ChangePlace;

class ChangeLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Open();
    ASSERT_OK(backend_->CreateDataset(spec_));
  }
  void Open() {
    backend_.reset();
    const std::vector<DatasetSpec> known =
        std::filesystem::exists(dir_.path() / "rocksdb") ? std::vector{spec_} : std::vector<DatasetSpec>();
    auto opened = OpenRocksDb(dir_.path(), known);
    ASSERT_OK(opened);
    backend_ = *std::move(opened);
  }
  /// Closes the store, and keeps its files as they are now.
  void Save() {
    backend_.reset();
    std::filesystem::copy(dir_.path() / "rocksdb", saved_, std::filesystem::copy_options::recursive);
  }
  /// Opens the store with the files that were saved, as if no others had reached the disk.
  void OpenSaved() {
    backend_.reset();
    std::filesystem::remove_all(dir_.path() / "rocksdb");
    std::filesystem::rename(saved_, dir_.path() / "rocksdb");
    for (const char* seal : {"SEAL", "SEAL.logs"}) std::filesystem::remove(dir_.path() / seal);
    Open();
  }
  ChangeLog& log() { return *backend_->engine().FindFamily(spec_.name)->gate.open_change_log(); }

  void TearDown() override { ShiftWallClock(0); }

  /// Writes the entry of a write that has begun.
  void Write(const ChangeLog::Writing& writing, const std::string& unit) {
    std::string units;
    ChangeLog::AppendUnit(units, unit);
    rocksdb::WriteBatch batch;
    ASSERT_OK(log().Add(batch, writing, units));
    ASSERT_OK(backend_->engine().Write(batch, false));
  }
  void WriteWhole(const std::string& unit, size_t bytes = 1) {
    const auto writing = log().Begin();
    Write(writing, unit);
    log().End(writing, bytes, ChangeLog::Outcome::kWritten);
  }

  std::vector<std::string> Keys(const ChangePlace& from, size_t limit = 1000) {
    const auto page = log().Read(from, limit, kBytes);
    EXPECT_OK(page);
    std::vector<std::string> keys;
    if (!page.ok()) return keys;
    for (const auto& unit : page->units) keys.push_back(unit.key);
    return keys;
  }

  using Names = std::vector<std::string>;
  static constexpr size_t kBytes = size_t{1} << 20;

  const TempDir dir_;
  const std::filesystem::path saved_ = dir_.path() / "saved";
  std::unique_ptr<RocksDbBackend> backend_;
  const DatasetSpec spec_{.name = "rows", .keep_changes_ms = 60'000, .incarnation = 7};
};

TEST_F(ChangeLogTest, AReaderStopsBeforeAWriteThatHasNotEnded) {
  const ChangePlace begin = log().Newest();
  const auto first = log().Begin();
  const auto second = log().Begin();
  Write(second, "b");
  log().End(second, 1, ChangeLog::Outcome::kWritten);
  EXPECT_EQ(Keys(begin), Names());
  EXPECT_LT(log().Read(begin, 10, kBytes)->complete_until_ms, first.at_ms);
  Write(first, "a");
  EXPECT_EQ(Keys(begin), Names()) << "it may still fail";
  log().End(first, 1, ChangeLog::Outcome::kWritten);
  EXPECT_EQ(Keys(begin), (Names{"a", "b"}));
  EXPECT_GE(log().Read(begin, 10, kBytes)->complete_until_ms, second.at_ms - 1);
}

TEST_F(ChangeLogTest, AWriteThatWroteNothingHoldsNobodyUp) {
  const ChangePlace begin = log().Newest();
  const auto nothing = log().Begin();
  WriteWhole("b");
  log().End(nothing, 0, ChangeLog::Outcome::kNothing);
  EXPECT_EQ(Keys(begin), Names{"b"});
}

TEST_F(ChangeLogTest, AWriteInDoubtHoldsReadersUpUntilALaterOneHasSucceeded) {
  const ChangePlace begin = log().Newest();
  const auto doubtful = log().Begin();
  const auto beside = log().Begin();
  log().End(doubtful, 0, ChangeLog::Outcome::kInDoubt);
  Write(beside, "beside");
  log().End(beside, 1, ChangeLog::Outcome::kWritten);
  EXPECT_EQ(Keys(begin), Names()) << "that one may have been written before the other failed";
  WriteWhole("later");
  EXPECT_EQ(Keys(begin), (Names{"beside", "later"}));
}

TEST_F(ChangeLogTest, PagesEndWithinTheUnitsOfAWrite) {
  const ChangePlace begin = log().Newest();
  const auto writing = log().Begin();
  std::string units;
  for (const char* unit : {"a", "b", "", "d"}) ChangeLog::AppendUnit(units, unit);
  rocksdb::WriteBatch batch;
  ASSERT_OK(log().Add(batch, writing, units));
  ASSERT_OK(backend_->engine().Write(batch, false));
  log().End(writing, 1, ChangeLog::Outcome::kWritten);
  WriteWhole("e");
  ChangePlace place = begin;
  Names all;
  for (int pages = 0; pages < 6; ++pages) {
    ASSERT_OK_AND_ASSIGN(const auto page, log().Read(place, 1, kBytes));
    for (const auto& unit : page.units) {
      all.push_back(unit.key);
      EXPECT_EQ(unit.after, page.next);
    }
    EXPECT_EQ(page.complete_until_ms == 0, pages < 4) << pages;
    place = page.next;
  }
  EXPECT_EQ(all, (Names{"a", "b", "", "d", "e"}));
}

TEST_F(ChangeLogTest, PlacesHoldOverRestarts) {
  const ChangePlace begin = log().Newest();
  WriteWhole("a");
  const ChangePlace middle = log().Newest();
  Open();
  EXPECT_EQ(Keys(begin), Names{"a"});
  EXPECT_EQ(Keys(middle), Names());
  WriteWhole("b");
  Open();
  WriteWhole("c");
  EXPECT_EQ(Keys(begin), (Names{"a", "b", "c"}));
  EXPECT_EQ(Keys(middle), (Names{"b", "c"}));
  EXPECT_EQ(Keys(log().Oldest()), (Names{"a", "b", "c"}));
}

TEST_F(ChangeLogTest, APlaceBeyondWhatAPowerFailureLeftIsRefused) {
  WriteWhole("a");
  const ChangePlace before = log().Newest();
  Save();
  Open();
  WriteWhole("b");
  const ChangePlace after = log().Newest();
  WriteWhole("c");
  const ChangePlace last = log().Newest();
  OpenSaved();
  WriteWhole("x");
  EXPECT_EQ(Keys(before), Names{"x"});
  // The generation in which they were is not known here, as its record was lost too.
  EXPECT_THAT(log().Read(after, 10, kBytes), FailsWith(absl::StatusCode::kOutOfRange, "from"));
  EXPECT_THAT(log().Read(last, 10, kBytes), FailsWith(absl::StatusCode::kOutOfRange, "from"));
}

TEST_F(ChangeLogTest, APlaceWithinAnEntryThatWasLostIsRefused) {
  const ChangePlace begin = log().Newest();
  Save();
  Open();
  const auto writing = log().Begin();
  std::string units;
  for (const char* unit : {"a", "b"}) ChangeLog::AppendUnit(units, unit);
  rocksdb::WriteBatch batch;
  ASSERT_OK(log().Add(batch, writing, units));
  ASSERT_OK(backend_->engine().Write(batch, false));
  log().End(writing, 1, ChangeLog::Outcome::kWritten);
  ASSERT_OK_AND_ASSIGN(const auto page, log().Read(begin, 1, kBytes));
  ChangePlace half = page.next;
  ASSERT_EQ(half.unit, 1u);
  OpenSaved();
  WriteWhole("x");
  EXPECT_THAT(log().Read(half, 10, kBytes), FailsWith(absl::StatusCode::kOutOfRange, "from"));
  // Also of a generation that is known.
  half.generation = begin.generation;
  EXPECT_THAT(log().Read(half, 10, kBytes), FailsWith(absl::StatusCode::kOutOfRange, "power failure"));
}

TEST_F(ChangeLogTest, WhatWasTrimmedStaysRefusedAfterARestart) {
  const ChangePlace begin = log().Newest();
  for (int i = 0; i < 10; ++i) WriteWhole("old");
  ShiftWallClock(2 * 60'000);
  WriteWhole("new");
  ASSERT_OK(log().Trim());
  Open();
  EXPECT_THAT(log().Read(begin, 10, kBytes), FailsWith(absl::StatusCode::kOutOfRange, "not kept any more"));
  EXPECT_EQ(Keys(log().Oldest()), Names{"new"});
}

TEST_F(ChangeLogTest, AShortLivedProcessTrims) {
  for (int i = 0; i < 10; ++i) WriteWhole("old");
  ShiftWallClock(2 * 60'000);
  Open();
  WriteWhole("new");
  EXPECT_EQ(Keys(log().Oldest()), Names{"new"});
}

TEST_F(ChangeLogTest, TimesDoNotGoBackwardsWithTheClock) {
  ShiftWallClock(3'600'000);
  const ChangePlace begin = log().Newest();
  WriteWhole("a");
  ShiftWallClock(0);
  Open();
  WriteWhole("b");
  ASSERT_OK_AND_ASSIGN(const auto page, log().Read(begin, 10, kBytes));
  ASSERT_EQ(page.units.size(), 2u);
  EXPECT_GE(page.units[1].at_ms, page.units[0].at_ms);
}

TEST_F(ChangeLogTest, AttemptsThatFailDoNotAddUp) {
  const ChangePlace begin = log().Newest();
  const auto doubtful = log().Begin();
  log().End(doubtful, 0, ChangeLog::Outcome::kInDoubt);
  uint64_t number = 0;
  for (int i = 0; i < 1'000; ++i) {
    const auto refused = log().Begin();
    number = refused.number;
    log().End(refused, 0, ChangeLog::Outcome::kNothing);
  }
  EXPECT_EQ(number, doubtful.number + 1) << "it is given again";
  WriteWhole("later");
  EXPECT_EQ(Keys(begin), Names{"later"});
}

TEST_F(ChangeLogTest, APlaceBeyondTheEndOfItsGenerationIsRefused) {
  WriteWhole("a");
  ChangePlace place = log().Newest();
  EXPECT_EQ(Keys(place), Names());
  place.number += 5;
  EXPECT_THAT(log().Read(place, 10, kBytes), FailsWith(absl::StatusCode::kOutOfRange, "power failure"));
  Open();
  for (int i = 0; i < 20; ++i) WriteWhole("b");
  EXPECT_THAT(log().Read(place, 10, kBytes), FailsWith(absl::StatusCode::kOutOfRange, "power failure"));
}

TEST_F(ChangeLogTest, OldEntriesGoAndTheirPlacesAreRefused) {
  const ChangePlace begin = log().Newest();
  WriteWhole("old");
  WriteWhole("old");
  ASSERT_OK(log().Trim());
  EXPECT_EQ(Keys(begin).size(), 2u);
  ShiftWallClock(2 * 60'000);
  WriteWhole("new");
  const ChangePlace behind = log().Newest();
  ASSERT_OK(log().Trim());
  EXPECT_THAT(log().Read(begin, 10, kBytes), FailsWith(absl::StatusCode::kOutOfRange, "not kept any more"));
  EXPECT_EQ(Keys(log().Oldest()), Names{"new"});
  // The last entry stays however old it is, because its number says which come next.
  ShiftWallClock(10 * 60'000);
  ASSERT_OK(log().Trim());
  Open();
  ShiftWallClock(0);
  EXPECT_EQ(Keys(log().Oldest()), Names{"new"});
  WriteWhole("newer");
  EXPECT_EQ(Keys(behind), Names{"newer"});
}

TEST_F(ChangeLogTest, WhatAConsumerHasNotPassedStays) {
  const ChangePlace begin = log().Newest();
  ASSERT_OK(log().SetConsumer("slow", begin));
  ASSERT_OK(log().SetConsumer("fast", begin));
  WriteWhole("old");
  const ChangePlace behind = log().Newest();
  WriteWhole("old too");
  ASSERT_OK(log().SetConsumer("fast", log().Newest()));
  ShiftWallClock(2 * 60'000);
  WriteWhole("new");
  ASSERT_OK(log().Trim());
  EXPECT_EQ(Keys(begin), (Names{"old", "old too", "new"}));
  // Also over a restart.
  Open();
  WriteWhole("newer");
  ASSERT_OK(log().Trim());
  EXPECT_EQ(Keys(begin).size(), 4u);

  ASSERT_OK_AND_ASSIGN(const auto consumers, log().Consumers());
  ASSERT_EQ(consumers.size(), 2u);
  EXPECT_EQ(consumers[0].name, "fast");
  EXPECT_EQ(consumers[1].name, "slow");
  EXPECT_EQ(consumers[1].place, begin);
  EXPECT_GE(consumers[1].lag_ms, 2u * 60'000);
  EXPECT_LT(consumers[0].lag_ms, 60'000u);
  EXPECT_GT(consumers[0].lag_ms, 0u);

  // Changes that the consumer has passed may go,
  ASSERT_OK(log().SetConsumer("slow", behind));
  ASSERT_OK(log().Trim());
  EXPECT_THAT(log().Read(begin, 10, kBytes), FailsWith(absl::StatusCode::kOutOfRange, "not kept any more"));
  EXPECT_EQ(Keys(behind), (Names{"old too", "new", "newer"}));
  EXPECT_THAT(log().SetConsumer("slow", begin),
              FailsWith(absl::StatusCode::kOutOfRange, "not kept any more"));
  // and all that is old when it is dropped.
  ASSERT_OK(log().DropConsumer("slow"));
  EXPECT_THAT(log().DropConsumer("slow"), FailsWith(absl::StatusCode::kNotFound, "no consumer named 'slow'"));
  ASSERT_OK(log().Trim());
  EXPECT_EQ(Keys(log().Oldest()), (Names{"new", "newer"}));
  Open();
  ASSERT_OK_AND_ASSIGN(const auto left, log().Consumers());
  ASSERT_EQ(left.size(), 1u);
  ASSERT_OK(log().SetConsumer("fast", log().Newest()));
  ASSERT_OK_AND_ASSIGN(const auto done, log().Consumers());
  EXPECT_EQ(done[0].lag_ms, 0u);
}

TEST_F(ChangeLogTest, WhatIsNotedIsLostWithWhatWasWritten) {
  WriteWhole("kept");
  Save();
  Open();
  WriteWhole("lost");
  ASSERT_OK(log().SetConsumer("ahead", log().Newest()));
  ASSERT_OK_AND_ASSIGN(const auto before, log().Consumers());
  const ChangePlace ahead = *before[0].place;
  OpenSaved();
  EXPECT_THAT(log().SetConsumer("ahead", ahead), FailsWith(absl::StatusCode::kOutOfRange, "token"));
  ASSERT_OK_AND_ASSIGN(const auto none, log().Consumers());
  EXPECT_TRUE(none.empty()) << "what was noted is lost with what was written";
}

TEST_F(ChangeLogTest, AConsumerKeepsItsPlaceOverManyRuns) {
  const ChangePlace begin = log().Newest();
  WriteWhole("first");
  ASSERT_OK(log().SetConsumer("slow", begin));
  constexpr int kRuns = 1'100;
  for (int run = 0; run < kRuns; ++run) {
    // As another process would.
    auto& family = *backend_->engine().FindFamily(spec_.name);
    family.gate.SetChangeLog(nullptr);
    ASSERT_OK(rocks::ApplyChangeLog(backend_->engine(), family));
    WriteWhole("later");
  }
  EXPECT_EQ(Keys(begin, 10'000).size(), size_t{kRuns} + 1);
  ASSERT_OK_AND_ASSIGN(const auto consumers, log().Consumers());
  EXPECT_EQ(consumers[0].place, begin);
  // Without it they are forgotten.
  ASSERT_OK(log().DropConsumer("slow"));
  Open();
  WriteWhole("last");
  EXPECT_THAT(log().Read(begin, 10, kBytes), FailsWith(absl::StatusCode::kOutOfRange, "not kept any more"));
}

TEST_F(ChangeLogTest, ConsumersAreOnlySoMany) {
  for (size_t i = 0; i < kMaxConsumers; ++i) {
    ASSERT_OK(log().SetConsumer("consumer" + std::to_string(i), log().Newest()));
  }
  EXPECT_THAT(log().SetConsumer("one more", log().Newest()),
              FailsWith(absl::StatusCode::kResourceExhausted, "which is the limit"));
  ASSERT_OK(log().SetConsumer("consumer7", log().Newest()));
  Open();
  ASSERT_OK_AND_ASSIGN(const auto consumers, log().Consumers());
  EXPECT_EQ(consumers.size(), kMaxConsumers);
}

TEST_F(ChangeLogTest, ALogHasABoundInBytes) {
  backend_.reset();
  auto dir = rocks::DataDir::Open(dir_.path(), /*create=*/false);
  ASSERT_OK(dir);
  constexpr uint64_t kMost = 2 << 20;
  auto opened = RocksDbBackend::Open(*std::move(dir), {&spec_, 1}, {}, {.changes_bytes = kMost});
  ASSERT_OK(opened);
  backend_ = *std::move(opened);
  const ChangePlace begin = log().Newest();
  ASSERT_OK(log().SetConsumer("gone", begin));
  // Files of what is always the same would be much smaller.
  Random random(7);
  constexpr size_t kUnitBytes = 10'000;
  for (int i = 0; i < 2'000; ++i) {
    std::string unit;
    while (unit.size() < kUnitBytes) unit += static_cast<char>(random.Below(256));
    WriteWhole(unit, unit.size());
  }
  // RocksDB knows the size of data in files, and estimates that of data in memory.
  ASSERT_TRUE(backend_->engine().db().Flush({}, log().handle()).ok());
  ASSERT_OK(log().Trim());
  EXPECT_THAT(log().Read(begin, 10, kBytes), FailsWith(absl::StatusCode::kOutOfRange, "not kept any more"));
  const auto left = log().Read(log().Oldest(), 10'000, size_t{1} << 30);
  ASSERT_OK(left);
  EXPECT_GE(left->units.size(), 1u);
  EXPECT_LT(left->units.size(), 2 * kMost / kUnitBytes);
  ASSERT_OK_AND_ASSIGN(const auto consumers, log().Consumers());
  EXPECT_FALSE(consumers[0].place) << "a consumer that is gone does not fill the disk";
}

TEST_F(ChangeLogTest, ManyWritersAndAReaderThatMissesNothing) {
  constexpr int kThreads = 4;
  constexpr int kWrites = 3'000;
  const ChangePlace begin = log().Newest();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kWrites; ++i) WriteWhole(std::to_string(thread) + ":" + std::to_string(i));
    });
  }
  std::vector<int> seen(kThreads, 0);
  ChangePlace place = begin;
  for (size_t all = 0; all < size_t{kThreads} * kWrites;) {
    ASSERT_OK_AND_ASSIGN(const auto page, log().Read(place, 100, kBytes));
    for (const auto& unit : page.units) {
      const int thread = unit.key[0] - '0';
      ASSERT_EQ(unit.key, std::to_string(thread) + ":" + std::to_string(seen[thread]++)) << "in order";
    }
    all += page.units.size();
    place = page.next;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Keys(place), Names());
}

TEST_F(ChangeLogTest, AReaderThatIsOvertakenByTrimmingIsToldSo) {
  backend_->engine().FindFamily(spec_.name)->settings->keep_changes_ms = 1;
  std::atomic<bool> stop{false};
  std::atomic<int> trims{0};
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) {
      WriteWhole(std::to_string(i));
      if (i % 1'000 != 999) continue;
      ASSERT_OK(log().Trim());
      ++trims;
    }
  });
  ChangePlace place = log().Oldest();
  std::optional<int> last;
  int refused = 0;
  for (int reads = 0; refused < 3; ++reads) {
    if (reads % 10 == 9) {
      // It is slow now and then.
      const int before = trims;
      while (trims == before) std::this_thread::yield();
    }
    const auto page = log().Read(place, 7, kBytes);
    if (!page.ok()) {
      ASSERT_THAT(page.status(), FailsWith(absl::StatusCode::kOutOfRange, "not kept any more"));
      ++refused;
      place = log().Oldest();
      last.reset();
      continue;
    }
    for (const auto& unit : page->units) {
      const int number = std::stoi(unit.key);
      if (last) {
        ASSERT_EQ(number, *last + 1) << "a gap that nobody was told of";
      }
      last = number;
    }
    place = page->next;
  }
  stop = true;
  writer.join();
}

TEST_F(ChangeLogTest, ADatasetOfTheSameNameDoesNotInheritALog) {
  WriteWhole("a");
  ASSERT_OK(backend_->DropDataset(spec_));
  DatasetSpec again = spec_;
  again.incarnation = 8;
  ASSERT_OK(backend_->CreateDataset(again));
  EXPECT_EQ(Keys(log().Oldest()), Names());
}

}  // namespace
}  // namespace kvstore::testing
