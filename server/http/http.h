#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace kvstore::server {

/// The pages that machines look at, by HTTP/1.1: /metrics, /healthz (the process runs), /readyz (it takes
/// calls). Who asks has a second for that, and nothing but GET and HEAD is answered; the connection ends
/// then. Thread-safe.
class HttpServer {
 public:
  struct Pages {
    std::function<std::string()> metrics;
    std::function<bool()> ready;
  };

  /// UNAVAILABLE if the address cannot be listened on.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address, Pages pages);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// The port; where 0 was given, the one that the system has chosen.
  int port() const;

 private:
  class Listener;
  explicit HttpServer(std::unique_ptr<Listener> listener);

  const std::unique_ptr<Listener> listener_;
};

}  // namespace kvstore::server
