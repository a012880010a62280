#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/mysql/driver/breaker.h"
#include "backends/mysql/driver/connection.h"
#include "backends/mysql/driver/connection_budget.h"
#include "base/mutex.h"
#include "kvstore_api/mysql_options.h"
#include "shardmap/shard_map.h"

namespace kvstore::mysql {

class Pool;

/// Whether what took so long on a connection has waited for an answer for as long as options.read_timeout_s
/// allows. The coarse clock, by which it is timed, may lag by a little.
bool HasTimedOut(Connection::Clock::duration elapsed, const PoolOptions& options);

/// A connection that is in use. Its destructor gives it back to the pool, which must outlive the lease.
class Lease {
 public:
  Lease(Pool& pool, std::unique_ptr<Connection> connection)
      : pool_(&pool), connection_(std::move(connection)) {}
  ~Lease();
  Lease(Lease&&) = default;
  Lease& operator=(Lease&&) = delete;
  Connection& operator*() { return *connection_; }
  Connection* operator->() { return connection_.get(); }
  /// Closes the connection, which has failed with `why`, and reports the failure to the host's breaker; OK:
  /// the host is not to blame. The lease must not be used any more.
  void Fail(const absl::Status& why);
  /// Tells the host's breaker that the host has answered, which the destructor does otherwise: for a lease
  /// that is kept for long.
  void Answered();
  /// Closes this connection, and all others of the pool as they come back, because the host has refused a
  /// write as read-only, or is offline: it is no master, or about to be none, and may end its connections at
  /// any moment. The lease must not be used any more.
  void FailAsNoMaster();

 private:
  Pool* pool_;
  std::unique_ptr<Connection> connection_;
};

/// The right to keep a lease of a pool for long, beside calls. At most a quarter of the pool's connections
/// are kept in this way, or one of two or three, so that calls find the others. To be asked for before the
/// lease is acquired, and destroyed after it.
class Hold {
 public:
  explicit Hold(Pool& pool);
  ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  /// OK, or RESOURCE_EXHAUSTED if as many are held already, or the pool has a single connection.
  const absl::Status& status() const { return status_; }

 private:
  Pool& pool_;
  absl::Status status_;
};

/// The connections to one host. Thread-safe.
///
/// A thread finds the connection that it used last in a slot of its own, without a lock: it waits for no
/// other thread, and neither connections nor the server's threads behind them move between cores. When
/// connections run short, they are taken from wherever they are idle, slots of other threads included.
class Pool : public IdleConnections {
 public:
  /// budget  Counts the connections of all pools. Must outlive this.
  Pool(Host host, const MySqlOptions& options, ConnectionBudget& budget);
  ~Pool() override;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Returns a connection that works as far as is known: an idle one, or a new one. While all are busy it
  /// waits for up to PoolOptions::wait_ms, and no longer than the deadline of this thread's call.
  ///
  /// UNAVAILABLE         the host fails, or its breaker is open.
  /// RESOURCE_EXHAUSTED  all connections were busy for that long: those to this host, or, as
  ///                     PoolOptions::max_total are open, those to all hosts.
  /// DEADLINE_EXCEEDED   the call was over before; CANCELLED likewise.
  absl::StatusOr<Lease> Acquire();
  /// Closes idle connections, and from now on those that come back. Leases that are out remain usable.
  void Close();

  const Host& host() const { return host_; }
  const Breaker& breaker() const { return breaker_; }
  /// How many connections there are, idle or in use.
  size_t size() const;
  /// How many of them are idle.
  size_t idle() const;
  bool CloseOneIdle() override;
  void CloseLongIdle() override;
  /// How many calls wait for a connection.
  int waiting() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  friend class Hold;
  friend class Lease;
  using Clock = Connection::Clock;
  using ConnectionPtr = std::unique_ptr<Connection>;

  static constexpr size_t kSlots = 64;
  /// Where threads of some numbers leave a connection for their next call; on a cache line of its own.
  struct alignas(64) Slot {
    std::atomic<Connection*> connection{nullptr};
  };

  /// Takes a connection back whose work is done.
  void GiveBack(ConnectionPtr connection);
  /// Closes a connection, or counts one that could not be opened (null).
  ///
  /// why  the failure, which the breaker is told; OK if the host is not to blame.
  void Discard(ConnectionPtr connection, const absl::Status& why);
  /// Puts the connection into this thread's slot and returns null; or returns the connection, if the slot is
  /// taken, somebody waits for a connection, or the pool is closed.
  ConnectionPtr KeepInSlot(ConnectionPtr connection);
  /// Removes and returns an idle connection, from wherever there is one; null if there is none.
  ConnectionPtr DequeueIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  enum class Fitness : uint8_t {
    kGood,   ///< It may be used, as far as is known.
    kUnfit,  ///< It is too old or retired, or the server has closed it.
    kHangs   ///< It was tested, and the server has not answered within the read timeout.
  };
  /// Says whether the connection may be used. If it was idle for long or is suspect, the server is asked.
  Fitness FitnessOf(Connection& connection) const;
  /// Closes the connection, which was idle, unless it may be used: it is null then.
  ///
  /// UNAVAILABLE        the host hangs. The breaker is told, and the other connections are retired, so
  ///                    that no call waits for each of them.
  /// DEADLINE_EXCEEDED  the call is over, and the connection was closed; CANCELLED likewise.
  absl::Status KeepIfGood(ConnectionPtr& connection);
  /// Opens a connection, which is counted already.
  absl::StatusOr<Lease> OpenNew();
  /// Returns a failure to connect with the breaker's message if that is open, so that a host that is down is
  /// reported by the same text each time.
  absl::Status AsTold(const absl::Status& failure) const;
  /// Notes that so many connections are closed, for the budget too, and wakes all who wait.
  void CountClosed(size_t count);
  const Host host_;
  const MySqlOptions& options_;
  ConnectionBudget& budget_;
  Breaker breaker_;
  std::array<Slot, kSlots> slots_;
  std::atomic<int> waiting_{0};
  std::atomic<size_t> held_{0};  // by a Hold each
  std::atomic<bool> closed_{false};
  // Connections that were last used before this time are tried before they are used again.
  std::atomic<Clock::time_point> suspect_before_{Clock::time_point::min()};
  // Connections that were opened before this time are not used again.
  std::atomic<Clock::time_point> retired_before_{Clock::time_point::min()};
  mutable Mutex mutex_;
  std::condition_variable changed_;
  // Idle connections outside of slots, the most recently used at the back.
  std::vector<ConnectionPtr> idle_ ABSL_GUARDED_BY(mutex_);
  size_t size_ ABSL_GUARDED_BY(mutex_) = 0;  // idle, in use, or being opened
};

}  // namespace kvstore::mysql
