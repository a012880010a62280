#pragma once

#include <absl/base/thread_annotations.h>

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/mutex.h"
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

  class Session;
  /// The connections that are open, in the order in which they came. Thread-safe.
  class Sessions {
   public:
    /// Adds one, and closes the first one if there are too many.
    void Add(const std::shared_ptr<Session>& session);
    void Remove(Session& session);

   private:
    void Take(Session& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

    using List = std::list<std::weak_ptr<Session>>;
    Mutex mutex_;
    List list_ ABSL_GUARDED_BY(mutex_);
    friend class Session;
  };

  const Pages pages_;
  Sessions sessions_;
  const std::unique_ptr<Listener> listener_;  // Destroyed first: connections use the others.
};

}  // namespace kvstore::server
