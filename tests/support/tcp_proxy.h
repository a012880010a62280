#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace kvstore::testing {

/// Stands between a client and a server on the loopback interface, and breaks what is between them.
/// Thread-safe.
class TcpProxy {
 public:
  /// Forwards connections to `target`, a port.
  explicit TcpProxy(uint16_t target);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  /// "127.0.0.1:PORT"
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  /// Ends all connections, and each new one at once.
  void Cut();
  /// Lets new connections through again.
  void Mend() { cut_ = false; }

 private:
  void Accept();
  void Forward(int client);

  const uint16_t target_;
  uint16_t port_ = 0;
  int listener_ = -1;
  std::atomic<bool> cut_{false};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<int> sockets_;          // open ones; guarded by mutex_
  std::vector<std::thread> threads_;  // guarded by mutex_
  std::thread acceptor_;
};

}  // namespace kvstore::testing
