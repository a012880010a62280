#pragma once

#include <grpcpp/client_context.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "client/channels.h"
#include "client/options.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::client {

/// Makes calls: with deadline, token, and attempts until one has an outcome. Thread-safe.
class Caller {
 public:
  using Clock = CallLimits::Clock;

  static absl::StatusOr<std::unique_ptr<Caller>> Open(const std::string& address,
                                                      const ConnectOptions& options);

  v1::KVStore::StubInterface& Stub() const { return channels_->Stub(); }
  v1::Endpoints::StubInterface& Endpoints() const { return channels_->Endpoints(); }
  const std::string& address() const { return channels_->address(); }

  /// Makes a call that changes nothing, or that gives the same when it is made again.
  template <typename Request, typename Response>
  absl::Status Read(grpc::Status (v1::KVStore::StubInterface::*method)(grpc::ClientContext*, const Request&,
                                                                       Response*),
                    const Request& request, Response& response) {
    return Repeat([&](grpc::ClientContext& context) {
      response.Clear();
      return (Stub().*method)(&context, request, &response);
    });
  }

  /// Makes a call that writes: the attempts carry one request ID.
  template <typename Request, typename Response>
  absl::Status Write(grpc::Status (v1::KVStore::StubInterface::*method)(grpc::ClientContext*, const Request&,
                                                                        Response*),
                     Request& request, Response& response) {
    return RepeatWrite(*request.mutable_attempt(), [&](grpc::ClientContext& context) {
      response.Clear();
      return (Stub().*method)(&context, request, &response);
    });
  }

  /// Sets up the context of a call.
  ///
  /// deadline  none: no deadline.
  void Prepare(grpc::ClientContext& context, std::optional<Clock::time_point> deadline) const;

  using Attempt = std::function<grpc::Status(grpc::ClientContext&)>;
  /// Makes an attempt, and again as long as it fails on the way or is turned away.
  absl::Status Repeat(const Attempt& attempt) const { return Repeat(attempt, /*writes=*/false); }
  /// The same for what must not be done twice, nor later than it seems: again only if it was turned away.
  absl::Status Once(const Attempt& attempt) const { return Repeat(attempt, /*writes=*/true); }

  /// What a failed call means: its error, and whether to make it again.
  struct Verdict {
    bool again = false;
    absl::Status status;
  };
  /// context  of the call, which has ended.
  /// writes   where it failed on its way, it may have happened.
  Verdict Judge(const grpc::Status& status, const grpc::ClientContext& context, bool writes) const;
  /// Waits before another attempt, longer after each; false if there is no time left for it.
  ///
  /// attempt   how many there were, less one.
  /// deadline  none: there is always time.
  bool Pause(int attempt, std::optional<Clock::time_point> deadline) const;

 private:
  Caller(std::unique_ptr<Channels> channels, ConnectOptions options);

  absl::Status Repeat(const Attempt& attempt, bool writes) const;
  absl::Status RepeatWrite(v1::Attempt& names, const Attempt& attempt);
  Clock::time_point Deadline() const;
  /// GetServerResponse.instance of the server that was met last; asked for if none was.
  absl::StatusOr<std::string> Instance();

  const std::unique_ptr<Channels> channels_;
  const ConnectOptions options_;
  const std::string authorization_;
  std::mutex mutex_;
  std::string instance_;  // of the server that was met last; guarded by mutex_
};

}  // namespace kvstore::client
