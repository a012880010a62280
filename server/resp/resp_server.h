#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/metrics_sink.h"
#include "server/call/call.h"
#include "server/resp/commands/cursors.h"
#include "server/resp/environment.h"
#include "server/resp/loop.h"
#include "server/tls/certificates.h"

namespace kvstore::server {

/// Serves a store over the Redis protocol (docs/redis.md), to connections that somebody else accepts: one
/// loop for each core, over which connections are spread. There are only so many: strangers make room for new
/// ones, and where callers are told apart one of them has at most half. Thread-safe.
class RespServer {
 public:
  /// core          Must outlive the server.
  /// certificates  The same; null: connections are not encrypted.
  RespServer(Core& core, const Certificates* certificates);
  /// Closes all connections.
  ~RespServer();
  RespServer(const RespServer&) = delete;
  RespServer& operator=(const RespServer&) = delete;

  /// Serves a connection; owns its descriptor.
  void Serve(int socket);
  /// The server stops (Core::draining): connections are closed as soon as everything is answered.
  void Drain();
  /// Returns whether connections are open; after Drain, whether some have not sent all of their answers.
  bool HasConnections() const { return figures_.connections.load(std::memory_order_acquire) > 0; }
  /// Closes all connections; those that are still answering may go on for so long.
  void Stop(std::chrono::milliseconds patience);

  void Describe(MetricsSink& sink) const;

 private:
  /// Returns whether there is no connection any more, at the latest at this time.
  bool AwaitNone(std::chrono::steady_clock::time_point until) const;

  Core& core_;
  resp::Cursors cursors_;
  resp::Figures figures_;
  std::vector<std::unique_ptr<resp::Loop>> loops_;
};

}  // namespace kvstore::server
