#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>

#include "absl/status/statusor.h"
#include "backends/mysql/breaker.h"
#include "backends/mysql/connection.h"
#include "backends/mysql/options.h"
#include "shardmap/shard_map.h"

namespace kvstore::mysql {

class Pool;

/// A connection that is out of its pool, and goes back at the end.
class Lease {
 public:
  Lease(std::shared_ptr<Pool> pool, std::unique_ptr<Connection> connection)
      : pool_(std::move(pool)), connection_(std::move(connection)) {}
  ~Lease();
  Lease(Lease&&) = default;
  Lease& operator=(Lease&&) = delete;
  Connection& operator*() { return *connection_; }
  Connection* operator->() { return connection_.get(); }
  /// The connection has failed: it is closed, and the host's breaker told.
  void Fail(const absl::Status& why);

 private:
  std::shared_ptr<Pool> pool_;
  std::unique_ptr<Connection> connection_;
};

/// The connections to one host. Thread-safe.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  Pool(Host host, const MySqlOptions& options)
      : host_(std::move(host)), options_(options), breaker_(host_.ToString(), options.breaker) {}

  /// A connection that works as far as is known. UNAVAILABLE: the host fails, or is left alone after it did.
  /// RESOURCE_EXHAUSTED: all connections are busy for longer than a call waits.
  absl::StatusOr<Lease> Acquire();
  /// No more connections are kept; those that are out finish what they do.
  void Close();

  const Host& host() const { return host_; }
  const Breaker& breaker() const { return breaker_; }
  /// How many there are, idle or out.
  size_t size() const;

 private:
  friend class Lease;
  using Clock = Connection::Clock;

  void GiveBack(std::unique_ptr<Connection> connection);
  void GiveUp(std::unique_ptr<Connection> connection, const absl::Status& why);
  /// An idle connection that is young enough, or null. Moves others to `stale`, to be closed without the lock.
  std::unique_ptr<Connection> TakeIdle(std::vector<std::unique_ptr<Connection>>& stale);

  const Host host_;
  const MySqlOptions& options_;
  Breaker breaker_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Connection>> idle_;  // the one used last is at the back
  size_t size_ = 0;
  bool closed_ = false;
  Clock::time_point suspect_before_;  // connections used before must be tried
};

}  // namespace kvstore::mysql
