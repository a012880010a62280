#include "server/call/call_history.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace kvstore::server {
namespace {

using Clock = CallHistory::Clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// 2026-01-01, at the beginning of a step.
const Clock::time_point kBegin{seconds(1'767'225'600)};
constexpr uint64_t kBeginMs = 1'767'225'600'000;

const CallHistory::Figures* Find(const CallHistory::Series& series, std::string_view name) {
  for (const auto& [one, figures] : series) {
    if (one == name) return &figures;
  }
  return nullptr;
}

TEST(CallHistory, HasAStepForEachTenSeconds) {
  CallHistory history;
  history.Advance(kBegin);
  history.Count(Operation::kGetRow, "events", 0.001, false);
  history.Count(Operation::kGetRow, "events", 0.001, true);
  history.Count(Operation::kPutRow, "pins", 0.5, false);
  history.Count(Operation::kListDatasets, "", 0.5, false);
  history.Advance(kBegin + milliseconds(9'999));
  EXPECT_TRUE(history.After(0).empty());
  history.Advance(kBegin + seconds(10));
  const auto steps = history.After(0);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].begin_ms, kBeginMs);
  ASSERT_EQ(steps[0].operations.size(), 3u);
  ASSERT_EQ(steps[0].datasets.size(), 2u);
  const auto* const got = Find(steps[0].operations, "GetRow");
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(got->calls, 2u);
  EXPECT_EQ(got->errors, 1u);
  EXPECT_EQ(Find(steps[0].datasets, "events")->calls, 2u);
  EXPECT_EQ(Find(steps[0].datasets, "pins")->errors, 0u);
  // A step without calls is one all the same, and each is counted once.
  history.Advance(kBegin + seconds(20));
  EXPECT_EQ(history.After(0).size(), 2u);
  ASSERT_EQ(history.After(kBeginMs).size(), 1u);
  EXPECT_TRUE(history.After(kBeginMs)[0].operations.empty());
  EXPECT_TRUE(history.After(kBeginMs + 10'000).empty());
}

TEST(CallHistory, QuantilesAreWithin25Percent) {
  for (const uint64_t us : {0, 1, 3, 4, 5, 7, 8, 100, 999, 12'345, 1'000'000, 400'000'000}) {
    CallHistory history;
    history.Advance(kBegin);
    for (int i = 0; i < 98; ++i)
      history.Count(Operation::kGetRow, "", static_cast<double>(us) / 1e6 + 1e-9, false);
    for (int i = 0; i < 2; ++i)
      history.Count(Operation::kGetRow, "", static_cast<double>(us) * 4 / 1e6 + 2e-9, false);
    history.Advance(kBegin + seconds(10));
    const auto steps = history.After(0);
    const auto& figures = steps[0].operations[0].second;
    EXPECT_EQ(figures.calls, 100u);
    EXPECT_GE(figures.p50_us, us);
    EXPECT_LE(figures.p50_us, us + us / 4 + 1);
    EXPECT_GE(figures.p99_us, std::min<uint64_t>(4 * us, 536'870'911));
    EXPECT_LE(figures.p99_us, 4 * us + us + 1);
  }
  // A call that takes longer than nine minutes is counted, too.
  CallHistory history;
  history.Advance(kBegin);
  history.Count(Operation::kCompact, "", 86'400, false);
  history.Advance(kBegin + seconds(10));
  EXPECT_EQ(history.After(0)[0].operations[0].second.calls, 1u);
}

TEST(CallHistory, IsAnHour) {
  CallHistory history;
  for (int i = 0; i <= 400; ++i) {
    history.Count(Operation::kGetRow, "events", 0.001, false);
    history.Advance(kBegin + i * CallHistory::kStep);
  }
  const auto steps = history.After(0);
  ASSERT_EQ(steps.size(), CallHistory::kSteps);
  EXPECT_EQ(steps.front().begin_ms, kBeginMs + 40 * 10'000);
  EXPECT_EQ(steps.back().begin_ms, kBeginMs + 399 * 10'000);
  // After a day without anybody who advanced it, nothing is left of that hour.
  history.Advance(kBegin + std::chrono::hours(30));
  history.Advance(kBegin + std::chrono::hours(31));
  EXPECT_EQ(history.After(0).size(), 1u);
}

TEST(CallHistory, GoesOnWhenTheClockIsSet) {
  CallHistory history;
  history.Advance(kBegin);
  history.Advance(kBegin + seconds(10));
  history.Advance(kBegin + seconds(20));
  ASSERT_EQ(history.After(0).size(), 2u);
  history.Advance(kBegin - seconds(100));
  history.Count(Operation::kGetRow, "", 0.001, false);
  history.Advance(kBegin - seconds(90));
  const auto steps = history.After(0);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].begin_ms, kBeginMs - 100'000);
  EXPECT_EQ(history.After(kBeginMs + 10'000).size(), 1u) << "who was told of later steps is told anew";
}

TEST(CallHistory, TellsSoManyDatasetsApart) {
  CallHistory history;
  history.Advance(kBegin);
  for (int i = 0; i < 300; ++i) history.Count(Operation::kGetRow, "d" + std::to_string(i), 0.001, false);
  history.Advance(kBegin + seconds(10));
  const auto steps = history.After(0);
  EXPECT_GE(steps[0].datasets.size(), CallHistory::kMostDatasets);
  EXPECT_LE(steps[0].datasets.size(), CallHistory::kMostDatasets + 1);
  uint64_t calls = 0;
  for (const auto& [name, figures] : steps[0].datasets) calls += figures.calls;
  EXPECT_EQ(calls, 300u);
  EXPECT_NE(Find(steps[0].datasets, CallHistory::kOthers), nullptr);
}

TEST(CallHistory, OfDatasetsOfManyThreadsTheBusiestKeepTheirNames) {
  CallHistory history;
  history.Advance(kBegin);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&history, t] {
        for (int i = 0; i < 50; ++i) {
          const std::string name = "d" + std::to_string(t) + "." + std::to_string(i);
          for (int calls = i < 20 ? 10 : 1; calls > 0; --calls)
            history.Count(Operation::kGetRow, name, 0.001, false);
        }
      });
    }
  }
  history.Advance(kBegin + seconds(10));
  const auto steps = history.After(0);
  for (int t = 0; t < 4; ++t) {
    for (int i = 0; i < 20; ++i) {
      const auto* const busy = Find(steps[0].datasets, "d" + std::to_string(t) + "." + std::to_string(i));
      ASSERT_NE(busy, nullptr) << t << " " << i;
      EXPECT_EQ(busy->calls, 10u);
    }
  }
}

TEST(CallHistory, LosesNoCallOfManyThreads) {
  CallHistory history;
  history.Advance(kBegin);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 20'000; ++i) history.Count(Operation::kGetRow, "events", 0.001, i % 2 == 0);
      });
    }
    for (int i = 1; i <= 50; ++i) {
      history.Advance(kBegin + i * CallHistory::kStep);
      std::this_thread::yield();
    }
  }
  history.Advance(kBegin + 51 * CallHistory::kStep);
  uint64_t calls = 0;
  uint64_t errors = 0;
  uint64_t of_dataset = 0;
  for (const auto& step : history.After(0)) {
    for (const auto& [name, figures] : step.operations) {
      calls += figures.calls;
      errors += figures.errors;
    }
    for (const auto& [name, figures] : step.datasets) of_dataset += figures.calls;
  }
  EXPECT_EQ(calls, 80'000u);
  EXPECT_EQ(errors, 40'000u);
  EXPECT_EQ(of_dataset, 80'000u);
}

}  // namespace
}  // namespace kvstore::server
