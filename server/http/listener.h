#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"

namespace kvstore::server {

/// Listens on an address, and runs the threads of the connections that it accepts. Thread-safe.
class Listener {
 public:
  /// Begins to listen; nothing is accepted before Start. UNAVAILABLE if the address cannot be listened on.
  ///
  /// address  "host:port"; with port 0 the system chooses one.
  /// share    The share of the descriptors that the process may have up to which connections are accepted.
  /// Beyond it
  ///          new ones are closed at once, so that the store always has some.
  static absl::StatusOr<std::unique_ptr<Listener>> Listen(const std::string& address, double share);
  /// Ends the threads.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// Accepts connections from now on. To be called once.
  ///
  /// threads   How many run what the sockets of connections wait for.
  /// accepted  Called for each connection, by one thread at a time; its socket has a strand of its own.
  void Start(int threads, std::function<void(boost::asio::ip::tcp::socket)> accepted);
  /// Accepts no more connections, and listens no longer, soon after this has returned.
  void StopAccepting();

  /// Returns the port that it listens on.
  int port() const { return port_; }

 private:
  explicit Listener(double share);
  boost::system::error_code Open(const std::string& address);
  void Accept();
  /// Accepts again after a pause, when for example there was no descriptor.
  void AcceptLater();

  const int first_refused_;  // connections get descriptors below it
  boost::asio::io_context context_;
  /// Threads also wait while connections wait for nothing but their calls.
  const boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      context_.get_executor()};
  boost::asio::ip::tcp::acceptor acceptor_{boost::asio::make_strand(context_)};
  boost::asio::steady_timer retry_{acceptor_.get_executor()};
  std::function<void(boost::asio::ip::tcp::socket)> accepted_;
  int port_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace kvstore::server
