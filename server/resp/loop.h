#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <memory>
#include <thread>
#include <unordered_map>

#include "server/resp/connection.h"
#include "server/resp/environment.h"
#include "server/resp/turns.h"
#include "server/resp/writes.h"
#include "server/tls/certificates.h"

namespace kvstore::server::resp {

/// A thread with its share of the connections. Thread-safe.
class Loop {
 public:
  /// certificates  null: connections are not encrypted. Must outlive the loop.
  Loop(const Environment& environment, const Certificates* certificates);
  /// There must be no connection any more.
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Serves a connection; owns its descriptor. When there are too many, the stranger who came first makes
  /// room; if all are known, the new one is told so and closed.
  void Add(int socket);
  /// Returns how many connections there are, and will be when those that were added are served.
  size_t connections() const { return count_.load(std::memory_order_relaxed); }
  /// Calls Connection::Drain for all connections.
  void Drain();
  /// Closes all connections, and those that are still added. Returns when that is done.
  void Close();

 private:
  void Serve(int socket);
  /// Returns whether there is room for one more connection, perhaps because one had to make it.
  bool MakeRoom();
  /// Looks after the time of all connections, again and again.
  void Watch();
  /// Calls `visit` for each connection, which may close.
  template <typename Visit>
  void ForEach(const Visit& visit);

  const Environment environment_;
  const Certificates* const certificates_;
  boost::asio::io_context context_{1};  // run by one thread
  boost::asio::steady_timer timer_{context_};
  PutGroups puts_;
  Turns turns_{context_};
  std::atomic<size_t> count_{0};
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;  // touched by the thread alone
  bool closing_ = false;                                                      // the same
  std::thread thread_;
};

}  // namespace kvstore::server::resp
