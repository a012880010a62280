#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace kvstore::shardops {

/// How many threads InParallel has at most: they wait for hosts, and a fleet has a thousand.
inline constexpr size_t kParallelThreads = 256;

/// Calls `work(i)` for each i < count, up to kParallelThreads at a time, and waits for all. `work` must not
/// throw.
template <typename Work>
void InParallel(size_t count, const Work& work) {
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < std::min(count, kParallelThreads); ++t) {
    threads.emplace_back([&] {
      for (size_t i = next++; i < count; i = next++) work(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace kvstore::shardops
