#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace kvstore::testing {

/// An HTTP server that does what a test wants of it, which no real server would. Thread-safe.
class HostileHttp {
 public:
  struct Request {
    std::string method;
    std::string target;                          ///< With the query.
    std::map<std::string, std::string> headers;  ///< Names in lower case.
    std::string body;
  };

  /// The connection on which a request came, and which the answer goes to.
  class Answer {
   public:
    /// Sends bytes as they are; returns whether the client took them.
    bool Send(const std::string& bytes);
    /// Sends a whole answer with its length. `headers` holds lines that end with "\r\n".
    bool Send(int status, const std::string& headers, const std::string& body);
    /// Sends the same bytes until the client closes the connection, or many gigabytes were sent. Returns how
    /// many.
    uint64_t SendForEver(const std::string& bytes);
    /// Keeps the connection open and sends nothing, until the client closes it or the server ends.
    void Stall();
    /// Closes the connection after the answer.
    void Close() { close_ = true; }

   private:
    friend class HostileHttp;
    Answer(HostileHttp& server, int socket) : server_(server), socket_(socket) {}
    HostileHttp& server_;
    const int socket_;
    bool close_ = false;
  };

  /// handler  Is called for each request, by a thread for each connection. `number` counts requests from 1.
  using Handler = std::function<void(const Request&, int number, Answer&)>;
  explicit HostileHttp(Handler handler);
  ~HostileHttp();
  HostileHttp(const HostileHttp&) = delete;
  HostileHttp& operator=(const HostileHttp&) = delete;

  uint16_t port() const { return port_; }
  /// Returns the requests so far, with bodies cut to 64 KiB.
  std::vector<Request> Requests() const;

 private:
  void Accept();
  void Serve(int socket);

  const Handler handler_;
  uint16_t port_ = 0;
  int listener_ = -1;
  std::atomic<bool> stopping_{false};
  mutable Mutex mutex_;
  std::vector<Request> requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  std::thread acceptor_;
};

}  // namespace kvstore::testing
