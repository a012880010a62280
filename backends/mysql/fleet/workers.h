#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace kvstore::mysql {

/// Threads that run what a call does on several hosts at once. There are as many as are needed at a time, up
/// to a limit: a pool of fixed size, which libraries offer, would be held up by hosts that hang. They live as
/// long as this, because the driver wants to know of each thread. Thread-safe.
class Workers {
 public:
  explicit Workers(size_t max_threads) : max_threads_(max_threads) {}
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Runs all tasks, the last one in the caller's thread, and returns when all are done. Tasks do not throw,
  /// and do not wait for one another.
  void RunAll(std::span<const std::function<void()>> tasks);

 private:
  void Work();

  const size_t max_threads_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable wanted_;
  std::deque<std::function<void()>> queue_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace kvstore::mysql
