#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/mysql/breaker.h"
#include "backends/mysql/connection.h"
#include "backends/mysql/options.h"
#include "shardmap/shard_map.h"

namespace kvstore::mysql {

class Pool;

/// A connection that is out of its pool, and goes back at the end. The pool must outlive it.
class Lease {
 public:
  Lease(Pool& pool, std::unique_ptr<Connection> connection)
      : pool_(&pool), connection_(std::move(connection)) {}
  ~Lease();
  Lease(Lease&&) = default;
  Lease& operator=(Lease&&) = delete;
  Connection& operator*() { return *connection_; }
  Connection* operator->() { return connection_.get(); }
  /// The connection has failed: it is closed, and the host's breaker told.
  void Fail(const absl::Status& why);
  /// The host has refused a write because it is no master: all connections are closed as they come back, so
  /// that none is used that the host may end at any moment.
  void Demoted();

 private:
  Pool* pool_;
  std::unique_ptr<Connection> connection_;
};

/// The connections to one host. Thread-safe.
///
/// A thread that comes back finds the connection that it used last in a slot of its own, without a lock: it
/// does not wait for other threads, and neither connections nor the server's threads behind them move between
/// cores. When connections run short, they are taken from wherever they are idle.
class Pool {
 public:
  Pool(Host host, const MySqlOptions& options)
      : host_(std::move(host)), options_(options), breaker_(host_.ToString(), options.breaker) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// A connection that works as far as is known. UNAVAILABLE: the host fails, or is left alone after it did.
  /// RESOURCE_EXHAUSTED: all connections are busy for longer than a call waits.
  absl::StatusOr<Lease> Acquire();
  /// No more connections are kept; those that are out finish what they do.
  void Close();

  const Host& host() const { return host_; }
  const Breaker& breaker() const { return breaker_; }
  /// How many there are, idle or out.
  size_t size() const;
  /// How many of them nobody uses.
  size_t idle() const;
  /// How many calls wait for one.
  int waiting() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  friend class Lease;
  using Clock = Connection::Clock;
  using Held = std::unique_ptr<Connection>;

  static constexpr size_t kSlots = 64;
  /// A cache line of its own.
  struct alignas(64) Slot {
    std::atomic<Connection*> connection{nullptr};
  };

  void GiveBack(Held connection);
  void GiveUp(Held connection, const absl::Status& why);
  /// Puts it into the thread's slot; gives it back if the slot is taken, or somebody waits.
  Held Park(Held connection);
  /// Any idle connection, or null. Under mutex_.
  Held TakeIdle();
  /// Whether it can be used as it is: young, and not suspect. May ask the server.
  bool IsGood(Connection& connection) const;
  void Closed(size_t count);
  /// Closes connections that were not used for long, down to the minimum.
  void Trim();

  const Host host_;
  const MySqlOptions& options_;
  Breaker breaker_;
  std::array<Slot, kSlots> slots_;
  std::atomic<int> waiting_{0};
  std::atomic<bool> closed_{false};
  std::atomic<Clock::time_point> suspect_before_{Clock::time_point::min()};  // used before: must be tried
  std::atomic<Clock::time_point> retired_before_{Clock::time_point::min()};  // opened before: not used again
  std::atomic<Clock::time_point> trim_at_{Clock::time_point::min()};
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<Held> idle_;  // those that no slot has; the one used last is at the back
  size_t size_ = 0;
};

}  // namespace kvstore::mysql
