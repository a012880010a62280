#include "backends/rocksdb/engine/timestamps.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "backend_api/prompt_scope.h"
#include "kvstore_api/limits.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

namespace kvstore::rocks {
namespace {

/// Timestamps with a clock that the test sets and a store in memory.
class TimestampsTest : public ::testing::Test {
 protected:
  void Start() {
    timestamps_ = std::make_unique<Timestamps>(stored_, StoreInto(), [this] { return now_.load(); });
  }
  /// Restarts as after kill -9: only what was stored remains.
  void Crash() { Start(); }
  void Restart() {
    ASSERT_OK(timestamps_->Close());
    Start();
  }
  uint64_t Assign(uint64_t row) { return timestamps_->Assign(row).value(); }

  Timestamps::Store StoreInto() {
    return [this](size_t slot, uint64_t ceiling) {
      if (fail_) return absl::ResourceExhaustedError("no space");
      ++stores_;
      if (ceiling == 0) {
        stored_.erase(slot);
      } else {
        stored_[slot] = ceiling;
      }
      return absl::OkStatus();
    };
  }

  std::atomic<uint64_t> now_ = 1'000'000;
  std::map<size_t, uint64_t> stored_;
  int stores_ = 0;
  bool fail_ = false;
  std::unique_ptr<Timestamps> timestamps_;
};

TEST_F(TimestampsTest, AreTheClockWhereItIsAhead) {
  Start();
  EXPECT_EQ(Assign(1), 1'000'000u);
  EXPECT_EQ(Assign(2), 1'000'000u);
  now_ += 5;
  EXPECT_EQ(Assign(1), 1'000'005u);
}

TEST_F(TimestampsTest, OfOneRowAlwaysGrow) {
  Start();
  EXPECT_EQ(Assign(1), 1'000'000u);
  EXPECT_EQ(Assign(1), 1'000'001u);
  now_ -= 500;  // the clock is set back
  EXPECT_EQ(Assign(1), 1'000'002u);
  EXPECT_EQ(Assign(2), 999'500u);
}

TEST_F(TimestampsTest, GoOnBehindACrash) {
  Start();
  const uint64_t before = Assign(1);
  now_ -= 100'000;
  Crash();
  EXPECT_GT(Assign(1), before);
  // A crash loses at most a second.
  EXPECT_LE(Assign(1), before + 1100);
}

TEST_F(TimestampsTest, GoOnExactlyBehindACleanClose) {
  Start();
  const uint64_t before = Assign(1);
  Restart();
  EXPECT_EQ(Assign(1), before + 1);
}

TEST_F(TimestampsTest, AHotRowRunsAheadAloneAlsoAcrossACrash) {
  Start();
  uint64_t hot = 0;
  for (int i = 0; i < 50'000; ++i) hot = Assign(1);
  EXPECT_EQ(hot, 1'049'999u);
  EXPECT_EQ(Assign(2), 1'000'000u);
  Crash();
  EXPECT_GT(Assign(1), hot);
  EXPECT_LT(Assign(2), 1'002'000u);
  Restart();
  EXPECT_GT(Assign(1), hot);
}

TEST_F(TimestampsTest, CeilingsOfSlotsThatTheClockHasPassedAreForgotten) {
  Start();
  for (int i = 0; i < 5000; ++i) Assign(1);
  Crash();
  EXPECT_EQ(stored_.size(), 2u);
  now_ += 1'000'000;
  Assign(1);
  Restart();
  EXPECT_EQ(stored_.size(), 1u);
}

TEST_F(TimestampsTest, CeilingsAreStoredAboutOnceASecond) {
  Start();
  for (int i = 0; i < 10'000; ++i, ++now_) Assign(static_cast<uint64_t>(i));
  EXPECT_LE(stores_, 11);
}

TEST_F(TimestampsTest, NoneIsGivenThatCouldNotBeKept) {
  Start();
  fail_ = true;
  EXPECT_THAT(timestamps_->Assign(1), testing::FailsWith(absl::StatusCode::kResourceExhausted, "no space"));
  fail_ = false;
  EXPECT_OK(timestamps_->Assign(1));
}

TEST_F(TimestampsTest, AThreadThatMustNotWaitDoesNotWaitForAStoreOfAnother) {
  std::promise<void> storing;
  std::promise<void> may_go_on;
  bool is_first = true;
  Timestamps timestamps(
      {},
      [&](size_t, uint64_t) {
        if (std::exchange(is_first, false)) {
          storing.set_value();
          may_go_on.get_future().wait();
        }
        return absl::OkStatus();
      },
      [this] { return now_.load(); });
  std::thread other([&] { EXPECT_OK(timestamps.Assign(1)); });
  storing.get_future().wait();
  const PromptScope prompt;
  EXPECT_TRUE(IsWouldWait(timestamps.Assign(2).status()));
  may_go_on.set_value();
  other.join();
  EXPECT_OK(timestamps.Assign(2));
}

TEST_F(TimestampsTest, TheRangeHasAnEnd) {
  now_ = kMaxTimestamp - 1;
  Start();
  EXPECT_EQ(Assign(1), kMaxTimestamp - 1);
  EXPECT_EQ(Assign(1), kMaxTimestamp);
  EXPECT_THAT(timestamps_->Assign(1), testing::FailsWith(absl::StatusCode::kResourceExhausted, "2^63"));
}

TEST_F(TimestampsTest, ConcurrentAssignsOfOneRowAreAllDifferent) {
  Start();
  std::vector<std::vector<uint64_t>> given(4);
  std::vector<std::thread> threads;
  for (auto& mine : given) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) mine.push_back(Assign(7));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> all;
  for (const auto& mine : given) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 20'000u);
}

TEST_F(TimestampsTest, ARandomLifeNeverGoesBack) {
  testing::Random random(testing::Seed("timestamps"));
  Start();
  std::map<uint64_t, uint64_t> last;
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t row = random.Below(5);
    const uint64_t timestamp = Assign(row);
    ASSERT_GT(timestamp, last[row]);
    last[row] = timestamp;
    if (random.OneIn(10)) now_ += random.Below(3);
    if (random.OneIn(500)) now_ += random.Below(5000);
    if (random.OneIn(500)) now_ -= std::min(now_.load(), random.Below(5000));
    if (random.OneIn(1000)) Crash();
    if (random.OneIn(1000)) Restart();
  }
}

}  // namespace
}  // namespace kvstore::rocks
