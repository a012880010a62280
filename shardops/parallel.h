#pragma once

#include <cstddef>
#include <thread>
#include <vector>

namespace kvstore::shardops {

/// Calls `work(i)` for each i < count, each in a thread of its own, and waits for all. `work` must not throw.
template <typename Work>
void InParallel(size_t count, const Work& work) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace kvstore::shardops
