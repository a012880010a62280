#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/migrations.h"
#include "kvstore_api/router.h"
#include "server/options.h"

namespace kvstore {

/// Serves a store over gRPC, as kvstore.proto says, with health checking (grpc.health.v1) and reflection.
/// docs/server.md and docs/security.md are for those who run it. Thread-safe.
class Server {
 public:
  /// Begins to serve. Router and migrations must outlive the server.
  ///
  /// migrations  What moves the datasets of this process; null: calls for that are refused.
  ///
  /// INVALID_ARGUMENT  has a line for each mistake in the options, files that cannot be read among them.
  /// UNAVAILABLE       an address cannot be listened on.
  static absl::StatusOr<std::unique_ptr<Server>> Start(Router& router, const ServerOptions& options,
                                                       Migrations* migrations = nullptr);
  /// Ends all calls at once, if Drain did not before.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Takes no new calls, says so to those who ask for its health, and returns when the calls that are open
  /// have ended, or drain_ms are over: then they are cancelled.
  void Drain();

  /// The addresses that it listens on; where port 0 was given, with the port that the system has chosen.
  const std::vector<std::string>& addresses() const;
  /// The port of /metrics; 0: none.
  int http_port() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace kvstore
