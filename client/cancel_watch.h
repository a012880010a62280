#pragma once

#include <grpcpp/client_context.h>

#include <atomic>
#include <chrono>
#include <optional>

namespace kvstore::client {

/// Cancels an RPC that is in flight when its caller cancels the call (CallLimits::cancelled), or at a time,
/// during the watch's lifetime. A blocking RPC looks at nothing but its deadline, so without this a server
/// that hangs would hold its caller until then.
///
/// One thread, which starts with the first watch and never ends, looks at all watched RPCs every 20 ms, as
/// long as there are some.
class CancelWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// Both must outlive the watch.
  ///
  /// cancelled  Null: nobody can cancel.
  /// deadline   For an RPC that lasts longer than one wait for it. Nothing: there is none.
  CancelWatch(grpc::ClientContext& context, const std::atomic<bool>* cancelled,
              std::optional<Clock::time_point> deadline = std::nullopt);
  ~CancelWatch();
  CancelWatch(const CancelWatch&) = delete;
  CancelWatch& operator=(const CancelWatch&) = delete;

 private:
  friend class Watcher;

  bool IsNeeded() const { return cancelled_ != nullptr || deadline_.has_value(); }
  bool IsOver() const;

  grpc::ClientContext& context_;
  const std::atomic<bool>* const cancelled_;
  const std::optional<Clock::time_point> deadline_;
  // The Watcher's, under its lock: neighbours in the list of all watches.
  CancelWatch* before_ = nullptr;
  CancelWatch* after_ = nullptr;
};

}  // namespace kvstore::client
