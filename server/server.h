#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "router/router.h"
#include "server/call/options.h"
#include "server/call/parts.h"

namespace kvstore {

/// Serves a store over gRPC, as kvstore.proto says, with health checking (grpc.health.v1) and, where
/// everybody may do everything, reflection; and, if the options say so, over HTTP as JSON and over the Redis
/// protocol. docs/server.md, docs/http.md, docs/redis.md and docs/security.md are for its operators.
/// Thread-safe.
class Server {
 public:
  /// Begins to serve. The router must outlive the server.
  ///
  /// parts  What it serves beside the data of the router; calls on what is not there are refused.
  ///
  /// INVALID_ARGUMENT has a line for each mistake in the options, such as a file that cannot be read.
  /// UNAVAILABLE names an address that cannot be listened on.
  static absl::StatusOr<std::unique_ptr<Server>> Start(Router& router, const ServerOptions& options,
                                                       ServerParts parts = {});
  /// Cancels all calls, unless Drain has ended them.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Refuses new calls, reports NOT_SERVING to health checks, and returns when the open calls have ended, or
  /// after drain_ms: then they are cancelled. A call that hangs where its limits are not checked, as in a
  /// read from a disk that does not answer, keeps this from returning; see EndInTime for a process that must
  /// end.
  void Drain();

  /// Describes the open calls for people: "2 calls: GetRow for 12.3 s, ScanRows for 0.1 s".
  std::string OpenCalls() const;

  /// Returns the addresses that it listens on, with the port that the system has chosen in place of port 0.
  const std::vector<std::string>& addresses() const;
  /// Returns the port of /metrics; 0 if it is not served.
  int http_port() const;
  /// Returns the address of the Redis protocol, as addresses(); empty if it is not served.
  std::string resp_address() const;
  /// Returns the port of the HTTP API; 0 if it is not served.
  int http_api_port() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace kvstore
