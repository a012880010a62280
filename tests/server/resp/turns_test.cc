#include "server/resp/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kvstore::testing {
namespace {

using server::resp::Turns;
using server::resp::TurnTaker;
using std::chrono::milliseconds;

/// Takes turns as long as it has work, each of which takes some time.
class Worker final : public TurnTaker, public std::enable_shared_from_this<Worker> {
 public:
  Worker(Turns& turns, std::string name, const void* caller, int turns_wanted, std::vector<std::string>& done)
      : turns_(turns), name_(std::move(name)), caller_(caller), left_(turns_wanted), done_(done) {}

  void TakeTurn() override {
    EXPECT_TRUE(turns_.MayBegin(caller_, Turns::Clock::time_point(milliseconds(1'000))));
    done_.push_back(name_);
    turns_.Count(caller_, milliseconds(1), Turns::Clock::time_point(milliseconds(1'000)));
    if (--left_ > 0) turns_.Wait(caller_, shared_from_this());
  }

 private:
  Turns& turns_;
  const std::string name_;
  const void* const caller_;
  int left_;
  std::vector<std::string>& done_;
};

class TurnsTest : public ::testing::Test {
 protected:
  bool MayBegin(const int& caller) { return turns_.MayBegin(&caller, now_); }
  void Wait(const std::string& name, const int& caller, int turns) {
    turns_.Wait(&caller, std::make_shared<Worker>(turns_, name, &caller, turns, done_));
  }
  /// Both callers have used the loop lately.
  void Share() {
    EXPECT_TRUE(MayBegin(one_));
    EXPECT_TRUE(MayBegin(other_));
    EXPECT_TRUE(MayBegin(one_));
  }

  const int one_ = 0;
  const int other_ = 0;
  Turns::Clock::time_point now_{milliseconds(1'000)};
  boost::asio::io_context loop_;
  Turns turns_{loop_, [this] { return now_; }};
  std::vector<std::string> done_;
};

TEST_F(TurnsTest, ACallerWithManyConnectionsHasNoMoreTurnsThanOneWithOne) {
  Share();
  for (const char* name : {"a1", "a2", "a3"}) Wait(name, one_, 1);
  Wait("b", other_, 3);
  loop_.run();
  int of_other = 0;
  for (size_t i = 0; i < 4; ++i) of_other += done_[i] == "b" ? 1 : 0;
  EXPECT_EQ(of_other, 2) << ::testing::PrintToString(done_);
  EXPECT_EQ(done_.size(), 6u);
}

TEST_F(TurnsTest, WhoHasUsedMoreWaitsAndWhoHasUsedLessDoesNot) {
  Share();
  turns_.Count(&one_, milliseconds(1), now_);
  EXPECT_FALSE(MayBegin(one_));
  EXPECT_TRUE(MayBegin(other_)) << "also while the other one's work waits";
  Wait("a", one_, 2);
  EXPECT_TRUE(MayBegin(other_));
  loop_.run();
  EXPECT_EQ(done_, (std::vector<std::string>{"a", "a"})) << "nobody else wants the loop";
}

/// Callers who come and go have always used less than one who stays.
TEST_F(TurnsTest, WhoHasWaitedForLongComesBeforeThoseWhoHaveUsedLess) {
  Share();
  turns_.Count(&one_, milliseconds(1), now_);
  EXPECT_FALSE(MayBegin(one_));
  Wait("a", one_, 1);
  now_ += milliseconds(90);
  EXPECT_TRUE(MayBegin(other_));
  now_ += milliseconds(20);
  const int newcomer = 0;
  EXPECT_FALSE(MayBegin(newcomer));
  EXPECT_FALSE(MayBegin(other_));
  Wait("b", other_, 1);
  loop_.run();
  EXPECT_EQ(done_, (std::vector<std::string>{"a", "b"}));
}

TEST_F(TurnsTest, WorkThatCameLaterDoesNotOvertakeThatOfItsOwnCaller) {
  Share();
  Wait("a", one_, 1);
  EXPECT_FALSE(MayBegin(one_));
  loop_.run();
  EXPECT_TRUE(MayBegin(other_));
}

TEST_F(TurnsTest, ACallerWhoIsAloneNeverWaits) {
  EXPECT_TRUE(MayBegin(one_));
  now_ += milliseconds(21);
  turns_.Count(&one_, milliseconds(100), now_);
  EXPECT_TRUE(MayBegin(one_));
  EXPECT_FALSE(turns_.IsShared(now_));
  // Nor is it held to what it used when others were there.
  Share();
  turns_.Count(&one_, milliseconds(100), now_);
  EXPECT_FALSE(MayBegin(one_));
  now_ += milliseconds(21);
  EXPECT_TRUE(MayBegin(one_));
}

TEST_F(TurnsTest, WhoWasIdleHasSavedUpLittle) {
  Share();
  turns_.Count(&one_, milliseconds(1'000), now_);
  EXPECT_TRUE(MayBegin(other_));
  turns_.Count(&other_, milliseconds(6), now_);
  EXPECT_FALSE(MayBegin(other_));
  EXPECT_TRUE(MayBegin(one_));
}

}  // namespace
}  // namespace kvstore::testing
