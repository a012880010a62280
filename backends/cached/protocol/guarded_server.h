#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "backends/cached/protocol/boot_clock.h"
#include "backends/cached/protocol/guard.h"
#include "backends/cached/servers/server.h"
#include "base/snapshot.h"

namespace kvstore::cached {

/// Whether an error of a server says that it fails, and not that this process asks too much, or that its view
/// is old.
bool IsFailure(const absl::Status& status);

/// A server of a cache with what this process knows of its guard. Thread-safe.
class GuardedServer {
 public:
  /// A guard that this process has read.
  struct Known {
    std::string text;
    Guard guard;
  };

  /// server  not null.
  explicit GuardedServer(std::unique_ptr<Server> server) : server_(std::move(server)) {}

  Server& server() { return *server_; }
  const std::string& name() const { return server_->name(); }
  /// The guard as it was read last; null if none was, or the server has none.
  std::shared_ptr<const Known> known() const { return known_.Load(); }
  /// Notes what was read of the guard.
  void Note(const std::optional<std::string>& text);
  /// Reads the guard. Makes one, which is not trusted, if there is none, it is that of an earlier list, or it
  /// cannot be understood. ABORTED if it is that of a later list, so that the view is old.
  ///
  /// list  that of a view that holds now: whoever made a guard for an old list would have others go by that.
  absl::StatusOr<std::shared_ptr<const Known>> Read(uint64_t list);
  /// As Read, and replaces the guard by what `change` makes of it; if that returns false nothing is to be
  /// changed. It is called again where another process has changed the guard in between.
  absl::Status Change(uint64_t list, const std::function<bool(Guard&)>& change);

  /// After a failure a server is not asked for a moment, so that reads do not wait for it one after the
  /// other.
  bool resting() const {
    return BootClock::now() < BootClock::time_point(BootClock::duration(rests_until_.load()));
  }
  /// Notes the outcome of a call of the server. An error that is no failure (IsFailure), and OK, count for
  /// nothing in Failed.
  void Failed(const absl::Status& why);
  void Succeeded() { failures_ = 0; }

 private:
  const std::unique_ptr<Server> server_;
  Snapshot<Known> known_{nullptr};
  std::atomic<int64_t> rests_until_{0};
  std::atomic<uint32_t> failures_{0};
};

}  // namespace kvstore::cached
