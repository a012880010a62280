#include "backends/mysql/fleet/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "kvstore_api/call_scope.h"
#include "tests/support/eventually.h"

namespace kvstore::mysql {
namespace {

using testing::Eventually;

TEST(Workers, ACallWaitsForNoTaskOfAnotherOne) {
  Workers workers(2);
  std::atomic<int> blocked{0};
  std::atomic<bool> release{false};
  const std::vector<std::function<void()>> blocks(3, [&] {
    ++blocked;
    EXPECT_TRUE(Eventually([&] { return release.load(); }));
  });
  // These take both workers and their own caller.
  std::thread other([&] { workers.RunAll(blocks); });
  ASSERT_TRUE(Eventually([&] { return blocked == 3; }));
  std::atomic<int> done{0};
  std::atomic<bool> returned{false};
  std::thread caller([&] {
    const CallScope scope(CallLimits{.waits = false});
    const std::vector<std::function<void()>> tasks(5, [&] {
      EXPECT_FALSE(CallScope::Current().waits);
      ++done;
    });
    for (int call = 0; call < 3; ++call) workers.RunAll(tasks);
    returned = true;
  });
  EXPECT_TRUE(Eventually([&] { return returned.load(); }));
  EXPECT_EQ(done, 15);
  release = true;
  caller.join();
  other.join();
}

TEST(Workers, EachTaskRunsOnce) {
  Workers workers(4);
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int call = 0; call < 200; ++call) {
        std::vector<std::atomic<int>> runs(6);
        std::vector<std::function<void()>> tasks;
        for (auto& run : runs) tasks.emplace_back([&run] { ++run; });
        workers.RunAll(tasks);
        for (const auto& run : runs) EXPECT_EQ(run, 1);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace kvstore::mysql
