#pragma once

#include <grpcpp/server_context.h>

#include <chrono>
#include <cstddef>
#include <mutex>
#include <unordered_map>

namespace kvstore::server {

/// Calls that are let in however full the server is, because anybody may make them, or to tell what it is so
/// full of. Instead there are at most so many at a time, and each is cancelled whose client does not take its
/// answer soon: else streams of clients that take nothing would be many, and stay. Thread-safe.
class BriefCalls {
 public:
  explicit BriefCalls(size_t most) : most_(most) {}

  /// False: there are too many. The context must live until Leave.
  bool Enter(grpc::CallbackServerContext& context);
  void Leave(grpc::CallbackServerContext& context);
  /// Cancels those that have been there for too long. Called now and then.
  void CancelOld();

 private:
  using Clock = std::chrono::steady_clock;

  const size_t most_;
  std::mutex mutex_;
  std::unordered_map<grpc::CallbackServerContext*, Clock::time_point> since_;  // guarded by mutex_
};

}  // namespace kvstore::server
