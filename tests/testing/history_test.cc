#include "testing/history.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace kvstore::testing {
namespace {

using Kind = History::Kind;

struct HistoryTest : public ::testing::Test {
  uint64_t Write() {
    const uint64_t value = history.NewValue();
    history.End(history.Begin(0, Kind::kWrite, value));
    return value;
  }
  void Delete() { history.End(history.Begin(0, Kind::kDelete)); }
  void Read(uint64_t value) { history.End(history.Begin(0, Kind::kRead), value); }
  History history{2};
};

TEST_F(HistoryTest, OneAfterTheOtherIsFine) {
  Read(0);
  const uint64_t a = Write();
  Read(a);
  const uint64_t b = Write();
  Read(b);
  Delete();
  Read(0);
  EXPECT_EQ(history.Check(), std::nullopt);
}

TEST_F(HistoryTest, ALostWriteIsFound) {
  const uint64_t a = Write();
  Write();
  Read(a);
  EXPECT_NE(history.Check(), std::nullopt);
}

TEST_F(HistoryTest, AResurrectedOneIsFound) {
  const uint64_t a = Write();
  Delete();
  Read(0);
  Read(a);
  EXPECT_NE(history.Check(), std::nullopt);
}

TEST_F(HistoryTest, ManyOfUnknownOutcomeThatNobodyHasSeenKeepNothingFromBeingFound) {
  for (int i = 0; i < 64; ++i) {
    history.Begin(0, Kind::kWrite, history.NewValue());
    history.Begin(0, Kind::kDelete);
  }
  const uint64_t a = Write();
  Read(a);
  const uint64_t b = Write();
  Read(b);
  EXPECT_EQ(history.Check(), std::nullopt);
  Read(a);
  EXPECT_NE(history.Check(), std::nullopt);
}

TEST_F(HistoryTest, AWriteOfUnknownOutcomeMayBeSeenLater) {
  const uint64_t a = Write();
  const uint64_t late = history.NewValue();
  history.Begin(0, Kind::kWrite, late);
  history.Begin(0, Kind::kDelete);
  Read(a);
  Read(late);
  Read(0);
  EXPECT_EQ(history.Check(), std::nullopt);
  Read(late);
  EXPECT_NE(history.Check(), std::nullopt);
}

TEST_F(HistoryTest, GoingBackInTimeIsFoundAlsoWhileAWriteIsUnderWay) {
  const uint64_t a = Write();
  const uint64_t b = history.NewValue();
  const size_t slow = history.Begin(0, Kind::kWrite, b);
  Read(a);
  Read(b);
  Read(b);
  EXPECT_EQ(history.Check(), std::nullopt);
  Read(a);
  history.End(slow);
  EXPECT_NE(history.Check(), std::nullopt);
}

TEST_F(HistoryTest, WhatWasNotAnsweredMayHappenLateOrNever) {
  const uint64_t a = Write();
  const uint64_t b = history.NewValue();
  history.Begin(0, Kind::kWrite, b);
  Read(a);
  EXPECT_EQ(history.Check(), std::nullopt);
  Read(b);
  EXPECT_EQ(history.Check(), std::nullopt);
  Read(a);
  EXPECT_NE(history.Check(), std::nullopt);
}

TEST_F(HistoryTest, WhatFailedForCertainIsNeverSeen) {
  const uint64_t value = history.NewValue();
  history.Fail(history.Begin(0, Kind::kWrite, value));
  Read(0);
  EXPECT_EQ(history.Check(), std::nullopt);
  Read(value);
  EXPECT_NE(history.Check(), std::nullopt);
}

/// A real register that many threads use is found to be linearizable.
TEST(History, ARealRegisterPasses) {
  History history(4);
  std::atomic<uint64_t> values[4] = {};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 3000; ++i) {
        const uint32_t key = (i * 7 + t) % 4;
        if ((i + t) % 3 == 0) {
          const uint64_t value = history.NewValue();
          const size_t op = history.Begin(key, Kind::kWrite, value);
          values[key] = value;
          history.End(op);
        } else {
          const size_t op = history.Begin(key, Kind::kRead);
          history.End(op, values[key]);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(history.Check(), std::nullopt);
}

}  // namespace
}  // namespace kvstore::testing
