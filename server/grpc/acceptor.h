#pragma once

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

/// Listens, and hands over connections; those for which there would be too few file descriptors left are
/// ended at once, so that the store has some, however many clients come. gRPC's own listeners take all there
/// are. Thread-safe.
class Acceptor {
 public:
  /// Of the descriptors that the process may have (RLIMIT_NOFILE, when it begins to listen) connections get
  /// those below this share.
  static constexpr double kShare = 0.8;

  /// Begins to listen; nothing is accepted before Start. A socket file that a server left behind is replaced.
  ///
  /// addresses  "host:port" or "unix:/path"; CheckAddresses has said that they are such.
  ///
  /// UNAVAILABLE  names the address that cannot be listened on, and why.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(const std::vector<std::string>& addresses);
  /// Stops.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  /// Accepts connections from now on. Once.
  ///
  /// take  gets each of them, with the socket that it came by, on one thread; the connection is its own then.
  void Start(std::function<void(int listener, int connection)> take);
  /// Accepts no more, and listens no longer.
  void Stop();

  /// As they were given; with the ports that the system has chosen, where port 0 was.
  const std::vector<std::string>& addresses() const { return addresses_; }
  /// Connections that were ended at once.
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  Acceptor();
  absl::Status ListenOn(const std::string& address);
  absl::Status ListenUnix(const std::string& address);
  absl::Status ListenTcp(const std::string& address);
  void Run();
  void Accept(int listener);

  const int limit_;  // the first descriptor that no connection gets
  std::vector<std::string> addresses_;
  std::vector<int> listeners_;
  std::vector<std::string> files_;  // of sockets, to be removed
  int stop_ = -1;                   // an eventfd
  std::function<void(int, int)> take_;
  std::atomic<uint64_t> refused_{0};
  std::chrono::steady_clock::time_point next_line_;  // of the log, of the thread
  std::thread thread_;
};

}  // namespace kvstore::server
