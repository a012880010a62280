#include "backends/mysql/changes/master_asks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <optional>
#include <thread>
#include <vector>

#include "kvstore_api/call_scope.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

/// Masters are asked without waiting for those that hang.
namespace kvstore::testing {
namespace {

using mysql::MasterAnswer;
using mysql::MasterAsks;
using Patience = MasterAsks::Patience;

class MasterAsksTest : public ::testing::Test {
 protected:
  MasterAsksTest() {
    asks_.emplace([this](const Host& host) {
      MutexLock lock(mutex_);
      ++asked_;
      while (host == hanging_ && hangs_) lock.Wait(released_);
      return MasterAnswer{
          .status = absl::OkStatus(), .now_ms = host.port, .end = {}, .domain = 0, .is_late = false};
    });
  }
  ~MasterAsksTest() override { Release(); }
  void Hang() {
    const MutexLock lock(mutex_);
    hangs_ = true;
  }
  void Release() {
    {
      const MutexLock lock(mutex_);
      hangs_ = false;
    }
    released_.notify_all();
  }
  int asked() {
    const MutexLock lock(mutex_);
    return asked_;
  }

  const Host answering_{"a", 1};
  const Host hanging_{"b", 2};
  const std::vector<Host> both_{answering_, hanging_};
  Mutex mutex_;
  std::condition_variable released_;
  bool hangs_ ABSL_GUARDED_BY(mutex_) = false;
  int asked_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<MasterAsks> asks_;
};

TEST_F(MasterAsksTest, OneThatHangsIsLateAndTheOthersAnswer) {
  Hang();
  for (int i = 0; i < 3; ++i) {
    const auto answers = asks_->AskAll(both_, Patience::kShort);
    ASSERT_EQ(answers.size(), 2u);
    EXPECT_OK(answers[0].status);
    EXPECT_EQ(answers[0].now_ms, 1u);
    EXPECT_TRUE(answers[1].is_late);
    EXPECT_THAT(answers[1].status, FailsWith(absl::StatusCode::kUnavailable, "b:2 does not answer"));
  }
  EXPECT_EQ(asked(), 4) << "the one that hangs is asked once";
  Release();
  EXPECT_TRUE(Eventually([&] { return !asks_->AskAll(both_, Patience::kShort)[1].is_late; }));
}

TEST_F(MasterAsksTest, WhoHasPatienceWaitsUntilItsCallIsOver) {
  Hang();
  {
    const CallScope scope(std::chrono::milliseconds(30));
    EXPECT_TRUE(absl::IsDeadlineExceeded(asks_->AskAll(both_, Patience::kWhole)[1].status));
  }
  std::atomic<bool> answered{false};
  std::thread patient([&] {
    EXPECT_OK(asks_->AskAll(both_, Patience::kWhole)[1].status);
    answered = true;
  });
  // Others have been late meanwhile.
  EXPECT_TRUE(asks_->AskAll(both_, Patience::kShort)[1].is_late);
  EXPECT_FALSE(answered);
  Release();
  patient.join();
}

TEST_F(MasterAsksTest, EveryAnswerIsOfAfterTheQuestion) {
  const Host host = answering_;
  std::atomic<uint64_t> written{0};
  MasterAsks asks([&](const Host&) {
    MasterAnswer answer;
    answer.status = absl::OkStatus();
    answer.now_ms = written;
    return answer;
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        const uint64_t before = ++written;
        EXPECT_GE(asks.AskAll({&host, 1}, Patience::kWhole)[0].now_ms, before);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(MasterAsksTest, HostsThatAreNotNeededAreForgotten) {
  asks_->AskAll(both_, Patience::kWhole);
  EXPECT_EQ(asks_->threads(), 2u);
  asks_->Forget([&](const Host& host) { return host == answering_; });
  EXPECT_EQ(asks_->threads(), 1u);
  EXPECT_OK(asks_->AskAll(both_, Patience::kWhole)[1].status) << "it is asked anew";
  Hang();
  EXPECT_TRUE(asks_->AskAll(both_, Patience::kShort)[1].is_late);
  asks_->Forget([&](const Host&) { return false; });
  EXPECT_EQ(asks_->threads(), 1u) << "nobody waits for the one that hangs";
}

}  // namespace
}  // namespace kvstore::testing
