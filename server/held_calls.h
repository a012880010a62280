#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "kvstore_api/router.h"
#include "server/worker_pool.h"

namespace kvstore::server {

/// Calls whose datasets move, until they are made again: when another catalog is in force, or after a moment
/// (Router::kHoldStep). Meanwhile they hold no thread. One thread waits for all of them. Thread-safe.
class HeldCalls {
 public:
  using Clock = Router::Clock;
  struct Held {
    /// Whether it is to be made again now in any case: its time is over, or nobody waits for it any more.
    std::function<bool(Clock::time_point now)> due;
    /// Makes it again. Runs on a worker, once.
    std::function<void()> again;
  };

  /// drains  whether the server stops: all are made again then, to be told so.
  HeldCalls(Router& router, WorkerPool& workers, std::function<bool()> drains);
  /// Nothing may be held any more.
  ~HeldCalls();
  HeldCalls(const HeldCalls&) = delete;
  HeldCalls& operator=(const HeldCalls&) = delete;

  void Add(Held call);
  size_t size() const;

 private:
  /// Where no other catalog says that it helps, so many are made again at a time, the longest held first, so
  /// that those behind do not have to wait for long, nor the backend answers all of them at once.
  static constexpr size_t kTogether = 32;
  static constexpr size_t kShare = 8;  ///< One of so many, if that is more.

  void Watch();
  /// Takes out those that are to be made again. Under mutex_.
  std::vector<Held> Take(bool all);

  Router& router_;
  WorkerPool& workers_;
  const std::function<bool()> drains_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wanted_;
  std::vector<Held> held_;  // the longest held first
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace kvstore::server
