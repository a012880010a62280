#include "server/call/worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "base/mutex.h"

namespace kvstore::server {
namespace {

using ::testing::ElementsAre;

/// A pool of one thread, which does nothing until Finish: all work that is posted before waits.
class WorkerPoolTest : public ::testing::Test {
 protected:
  WorkerPoolTest() {
    pool_->Post(mine_, [this] { begin_.WaitForNotification(); });
  }
  ~WorkerPoolTest() override {
    if (owned_) Finish();
  }

  void Post(WorkQueue& queue, const std::string& name) {
    pool_->Post(queue, [this, name] { done_.push_back(name); });
  }
  /// Returns the work that was done, in order.
  const std::vector<std::string>& Finish() {
    begin_.Notify();
    owned_.reset();
    return done_;
  }

  WorkQueue mine_;
  WorkQueue one_;
  WorkQueue two_;
  WorkQueue three_;
  absl::Notification begin_;
  std::vector<std::string> done_;
  std::unique_ptr<WorkerPool> owned_ = std::make_unique<WorkerPool>(1);
  WorkerPool* const pool_ = owned_.get();  // also used by work that runs while the pool is destroyed
};

TEST_F(WorkerPoolTest, CallersTakeTurns) {
  for (const char* name : {"1a", "1b", "1c", "1d"}) Post(one_, name);
  for (const char* name : {"2a", "2b"}) Post(two_, name);
  Post(three_, "3a");
  EXPECT_THAT(Finish(), ElementsAre("1a", "2a", "3a", "1b", "2b", "1c", "1d"));
}

TEST_F(WorkerPoolTest, WorkThatGoesOnGoesBehindTheOthersOfItsCaller) {
  pool_->Post(one_, [this] {
    done_.emplace_back("scan");
    Post(one_, "the rest of the scan");
  });
  for (const char* name : {"1b", "1c"}) Post(one_, name);
  for (const char* name : {"2a", "2b"}) Post(two_, name);
  EXPECT_THAT(Finish(), ElementsAre("scan", "2a", "1b", "2b", "1c", "the rest of the scan"));
}

TEST_F(WorkerPoolTest, AQueueThatWasEmptyHasItsTurnBehindAllOthers) {
  Post(one_, "1a");
  Post(one_, "1b");
  Post(two_, "2a");
  pool_->Post(three_, [this] { Post(two_, "2b"); });
  Post(three_, "3b");
  EXPECT_THAT(Finish(), ElementsAre("1a", "2a", "1b", "3b", "2b"));
}

TEST_F(WorkerPoolTest, WhatWorkHasGoesBeforeTheNextBegins) {
  auto held = std::make_shared<int>();
  const std::weak_ptr<int> left = held;
  pool_->Post(one_, [mine = std::move(held)] {});
  pool_->Post(one_, [this, left] { done_.emplace_back(left.expired() ? "gone" : "there"); });
  EXPECT_THAT(Finish(), ElementsAre("gone"));
}

TEST(WorkerPool, OneCallerRunsNoMoreThanItsShareAtATime) {
  WorkQueue much;
  WorkQueue little;
  absl::Notification go_on;
  absl::Notification begun;
  Mutex mutex;
  std::vector<std::string> done;
  const auto note = [&](const char* name) {
    const MutexLock lock(mutex);
    done.emplace_back(name);
  };
  {
    WorkerPool pool(2, 1);
    pool.Post(much, [&] {
      begun.Notify();
      go_on.WaitForNotification();
      note("first");
    });
    begun.WaitForNotification();
    for (const char* name : {"second", "third"}) pool.Post(much, [&note, name] { note(name); });
    // The other thread is for other callers, and for each of them as soon as it comes.
    pool.Post(little, [&] {
      note("another's");
      go_on.Notify();
    });
    go_on.WaitForNotification();
  }
  EXPECT_THAT(done, ElementsAre("another's", "first", "second", "third"));
}

TEST(WorkerPool, ManyThreadsDoAllThatIsPosted) {
  constexpr size_t kWorks = 10'000;
  std::atomic<size_t> done{0};
  std::array<WorkQueue, 3> queues;
  {
    WorkerPool pool(4);
    for (size_t i = 0; i < kWorks; ++i) {
      WorkQueue& queue = queues.at(i % queues.size());
      pool.Post(queue, [&pool, &done, &queue] { pool.Post(queue, [&done] { ++done; }); });
    }
  }
  EXPECT_EQ(done, kWorks);
}

}  // namespace
}  // namespace kvstore::server
