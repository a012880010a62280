#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/http/listener.h"

namespace kvstore::server {

/// Serves the pages for monitoring over HTTP/1.1: /metrics, /healthz (the process runs) and /readyz (it
/// accepts calls). Each connection has one request, GET or HEAD, which must arrive within a second.
/// Thread-safe.
class HttpServer {
 public:
  struct Pages {
    std::function<std::string()> metrics;  ///< Returns the text of /metrics. Called on any thread.
    std::function<bool()> ready;  ///< Returns whether the server accepts calls. Called on any thread.
  };

  /// Begins to serve. UNAVAILABLE if the address cannot be listened on.
  ///
  /// address  "host:port"; with port 0 the system chooses one.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address, Pages pages);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Returns the port that it listens on.
  int port() const;

 private:
  /// checks_host  Whether a request must name this machine in a way that no web page can.
  HttpServer(std::unique_ptr<Listener> listener, Pages pages, bool checks_host);

  const Pages pages_;
  std::atomic<size_t> open_{0};
  const std::unique_ptr<Listener> listener_;  // Destroyed first: connections use the others.
};

}  // namespace kvstore::server
