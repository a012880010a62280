#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace kvstore::shardops {

/// As many hosts are asked at the same time.
inline constexpr size_t kMostAtOnce = 256;

/// Calls `work(i)` for each i < count, by up to kMostAtOnce threads, and waits for all. `work` must not
/// throw.
template <typename Work>
void InParallel(size_t count, const Work& work) {
  std::atomic<size_t> next{0};
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> threads;
  try {
    while (threads.size() < std::min(count, kMostAtOnce)) threads.emplace_back(run);
  } catch (const std::system_error&) {
    // The system gives no more threads: those that there are do the work, and this one.
    run();
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace kvstore::shardops
