#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "migration/copier.h"

namespace kvstore::migration {
namespace {

TEST(CopyLock, WhoHasItAloneMeetsNobody) {
  CopyLock lock;
  std::atomic<int> alone{0};
  std::atomic<int> shared{0};
  std::atomic<int> met{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        if (t % 2 == 0) {
          const auto guard = lock.Exclude();
          if (++alone > 1 || shared > 0) ++met;
          --alone;
        } else {
          const auto guard = lock.Share();
          ++shared;
          if (alone > 0) ++met;
          --shared;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(met, 0);
}

TEST(CopyLock, NobodyWaitsForEverBehindThoseWhoComeBackAtOnce) {
  CopyLock lock;
  std::atomic<bool> stop{false};
  std::vector<std::thread> greedy;
  for (int t = 0; t < 4; ++t) {
    greedy.emplace_back([&, t] {
      // The lock is never free, as during a backfill.
      while (!stop) {
        if (t == 0) {
          const auto guard = lock.Exclude();
        } else {
          const auto guard = lock.Share();
          std::this_thread::yield();
        }
      }
    });
  }
  // With a lock that is not fair, these loops would never end.
  for (int i = 0; i < 500; ++i) {
    const auto alone = lock.Exclude();
  }
  for (int i = 0; i < 500; ++i) {
    const auto shared = lock.Share();
  }
  stop = true;
  for (std::thread& thread : greedy) thread.join();
}

}  // namespace
}  // namespace kvstore::migration
