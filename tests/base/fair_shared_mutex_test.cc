#include "base/fair_shared_mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace kvstore {
namespace {

TEST(FairSharedMutex, ExcludesAndSharesLikeAStandardOne) {
  FairSharedMutex mutex;
  {
    const std::shared_lock shared(mutex);
    std::thread([&] {
      EXPECT_FALSE(std::unique_lock(mutex, std::try_to_lock).owns_lock());
      EXPECT_TRUE(std::shared_lock(mutex, std::try_to_lock).owns_lock());
    }).join();
  }
  {
    const std::unique_lock exclusive(mutex);
    std::thread([&] {
      EXPECT_FALSE(std::unique_lock(mutex, std::try_to_lock).owns_lock());
      EXPECT_FALSE(std::shared_lock(mutex, std::try_to_lock).owns_lock());
    }).join();
  }
  EXPECT_TRUE(std::unique_lock(mutex, std::try_to_lock).owns_lock());
}

TEST(FairSharedMutex, IsHeldExclusivelyThoughItIsSharedWithoutAGap) {
  FairSharedMutex mutex;
  mutex.lock_shared();
  std::thread exclusive([&] { const std::unique_lock lock(mutex); });
  // Hand over hand: each holder comes before the one before it has gone. A mutex that lets in all of them
  // never lets in the other thread.
  while (mutex.try_lock_shared()) {
    mutex.unlock_shared();
    std::this_thread::yield();
  }
  mutex.unlock_shared();
  exclusive.join();
}

TEST(FairSharedMutex, IsSharedThoughAnotherThreadAlwaysWaitsForItExclusively) {
  FairSharedMutex mutex;
  std::atomic<bool> shared{false};
  std::atomic<int> exclusive{0};  // the threads that hold it, or are about to wait for it
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!shared) {
        ++exclusive;
        const std::unique_lock lock(mutex);
        // Until the other thread has come.
        while (exclusive < 2 && !shared) std::this_thread::yield();
        --exclusive;
      }
    });
  }
  {
    const std::shared_lock lock(mutex);
    shared = true;
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace kvstore
