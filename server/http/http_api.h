#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "server/call/call.h"
#include "server/tls/certificates.h"

namespace kvstore::server {

/// Serves the store over HTTP/1.1 as JSON (docs/http.md), at ServerOptions::http_api. Thread-safe.
class HttpApi {
 public:
  /// Begins to serve. UNAVAILABLE if the address cannot be listened on.
  ///
  /// core          Must outlive what is returned.
  /// certificates  The same; null: connections are not encrypted.
  static absl::StatusOr<std::unique_ptr<HttpApi>> Start(Core& core, const Certificates* certificates);
  /// Stops.
  ~HttpApi();
  HttpApi(const HttpApi&) = delete;
  HttpApi& operator=(const HttpApi&) = delete;

  /// Accepts no more connections, and ends those that have no request in flight, others as soon as they have
  /// none. Core::draining is set already.
  void Drain();
  /// Ends all connections, with what is in flight, and returns when nothing of them is left.
  void Stop();

  /// Returns the port that it listens on.
  int port() const;

 private:
  class Impl;
  explicit HttpApi(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace kvstore::server
