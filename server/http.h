#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

struct mg_context;

namespace kvstore::server {

/// The pages that machines look at, by HTTP/1.1: /metrics, /healthz (the process runs), /readyz (it takes
/// calls). Thread-safe.
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
  explicit HttpServer(Pages pages) : pages_(std::move(pages)) {}

  const Pages pages_;
  mg_context* context_ = nullptr;
};

}  // namespace kvstore::server
