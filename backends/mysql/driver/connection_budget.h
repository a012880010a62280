#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "kvstore_api/mysql_options.h"

namespace kvstore::mysql {

/// Connections to one host, as ConnectionBudget sees them. Thread-safe.
class IdleConnections {
 public:
  virtual ~IdleConnections() = default;
  /// Closes a connection that is idle at this moment, and returns its place to the budget. Returns whether
  /// there was one.
  virtual bool CloseOneIdle() = 0;
  /// Closes the connections that have been idle for PoolOptions::idle_s, down to min_connections.
  virtual void CloseLongIdle() = 0;
};

/// Counts the connections to all hosts, which are PoolOptions::max_total at most. A thread of its own has the
/// pools close what is idle for long, also the pools that nobody uses any more. Thread-safe.
class ConnectionBudget {
 public:
  explicit ConnectionBudget(const PoolOptions& options);
  ~ConnectionBudget();
  ConnectionBudget(const ConnectionBudget&) = delete;
  ConnectionBudget& operator=(const ConnectionBudget&) = delete;

  /// Adds and removes a pool. When Remove returns, no call of the pool is running.
  void Add(IdleConnections& pool);
  void Remove(IdleConnections& pool);

  /// Takes a place for one more connection. If there is none, it has another pool than `mine` close a
  /// connection that is idle, and takes that place. Returns false if none is idle: all connections to all
  /// hosts are in use. Must not be called under a lock of a pool.
  bool Take(const IdleConnections& mine);
  /// Returns places. May be called under a lock of a pool.
  void Release(size_t places) { used_ -= places; }
  size_t used() const { return used_; }

 private:
  bool TakeFree();
  void Run(std::chrono::milliseconds every);

  const size_t most_;
  std::atomic<size_t> used_{0};
  Mutex mutex_;
  std::condition_variable stop_;
  std::vector<IdleConnections*> pools_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;  // the pool that is asked first to close a connection
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace kvstore::mysql
