#pragma once

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <cstddef>
#include <unordered_map>

#include "base/mutex.h"
#include "server/call/call_info.h"

namespace kvstore::server {

/// Calls that are admitted even when the server is full, either because anybody may make them or because an
/// operator needs them to see what fills the server. They have a limit of their own instead, and each is
/// cancelled when its client does not take the answer within seconds: otherwise streams of clients that take
/// nothing would pile up. Thread-safe.
class BriefCalls {
 public:
  /// most  How many of them may be open at a time.
  explicit BriefCalls(size_t most) : most_(most) {}

  /// Admits a call; returns false if there are too many. The transport must live until Release.
  bool Admit(CallTransport& transport);
  void Release(CallTransport& transport);
  /// Cancels those that have been open for more than five seconds. To be called every second or so.
  void CancelOld();

 private:
  using Clock = std::chrono::steady_clock;

  const size_t most_;
  Mutex mutex_;
  std::unordered_map<CallTransport*, Clock::time_point> since_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kvstore::server
