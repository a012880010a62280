#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"

namespace kvstore::server {

/// Listens, and hands over the connections that it accepts. When file descriptors run short it closes new
/// connections at once, so that the store always has some, however many clients come; gRPC's own listeners
/// would use them up. Thread-safe.
class Acceptor {
 public:
  /// The share of the descriptors that the process may have (RLIMIT_NOFILE, when it begins to listen) up to
  /// which connections are accepted.
  static constexpr double kShare = 0.8;

  /// Begins to listen; nothing is accepted before Start. A socket file that a server left behind is replaced.
  /// UNAVAILABLE names an address that cannot be listened on, and why.
  ///
  /// addresses  "host:port" or "unix:/path", which CheckAddresses has accepted.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(const std::vector<std::string>& addresses);
  /// Stops.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  /// Accepts connections from now on. To be called once.
  ///
  /// serve  Called for each connection, on one thread, with the socket that it came by. Owns the connection's
  ///        descriptor from then on.
  void Start(std::function<void(int listener, int connection)> serve);
  /// Accepts and listens no longer.
  void Stop();

  /// Returns the addresses as they were given, with the port that the system has chosen in place of port 0.
  const std::vector<std::string>& addresses() const { return addresses_; }
  /// Returns how many connections were closed at once.
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  /// The file of a socket, by which it is told from that of another server at the same path.
  struct SocketFile {
    std::string path;
    dev_t device;
    ino_t inode;
  };

  Acceptor();
  absl::Status ListenOn(const std::string& address);
  absl::Status ListenUnix(const std::string& address);
  absl::Status ListenTcp(const std::string& address);
  void Run();
  void Accept(int listener);

  const int limit_;  // connections get descriptors below it
  std::vector<std::string> addresses_;
  std::vector<int> listeners_;
  std::vector<SocketFile> files_;  // to be removed by Stop
  int stop_ = -1;                  // an eventfd
  std::function<void(int, int)> serve_;
  std::atomic<uint64_t> refused_{0};
  std::chrono::steady_clock::time_point next_line_;  // when a refusal may be logged again; thread_'s
  std::thread thread_;
};

}  // namespace kvstore::server
