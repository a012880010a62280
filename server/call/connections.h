#pragma once

#include <absl/base/thread_annotations.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"

namespace kvstore::server {

/// Returns the address of a socket's other side as gRPC writes it, but with plain brackets; empty if the
/// socket is not a TCP connection.
std::string PeerOf(int socket);

/// Ends connections over which strangers, that is callers who are not authenticated, send too much.
///
/// gRPC 1.51 accepts some frames without a limit, before there is a call to refuse or faster than calls are
/// refused: headers that do not end, and streams that are reset as soon as they are opened. Therefore this
/// counts the calls of strangers, and the bytes that arrive as the kernel counts them, encrypted or not. A
/// connection over which a caller was authenticated once may send what it likes, and costs nothing here.
/// Connections over unix sockets are not counted: only users of the machine can open them. Thread-safe.
class Connections {
 public:
  using Clock = std::chrono::steady_clock;

  /// When gRPC has read so many bytes of a connection that is not trusted, it becomes a suspect, and calls of
  /// known callers are reported for it; at twice as many, or when as many more were read since, it is ended.
  /// A request without a token may fill a stream's window before it is refused; a call of a few bytes takes
  /// about 20 KB of memory.
  static constexpr uint64_t kBytes = uint64_t{256} << 10;
  /// The same limits as a number of refused calls within kCountedFor.
  static constexpr uint32_t kCalls = 200;
  static constexpr std::chrono::milliseconds kCountedFor{500};
  /// When so many calls of all callers are in gRPC at a time, each connection of a stranger of which more
  /// than kFewBytes were read lately becomes a suspect; at twice as many these connections are ended.
  static constexpr size_t kCrowd = 2'500;
  static constexpr uint64_t kFewBytes = uint64_t{16} << 10;

  /// has_known_call  Returns whether an authenticated call is open over the connection of this peer. Called
  ///                 on any thread.
  explicit Connections(std::function<bool(const std::string& peer)> has_known_call);
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  /// Begins to watch a connection, before its first byte is read.
  void Accepted(int socket);
  /// Counts a call that was not authenticated.
  ///
  /// peer  The client's address, as gRPC writes it.
  void StrangerCalled(std::string_view peer);
  /// Counts a call that gRPC holds, of anybody, from when its headers were read until CallLeft. Costs little.
  void CallArrived();
  void CallLeft() { calls_.fetch_sub(1, std::memory_order_relaxed); }
  /// Returns whether there are suspects, for which KnownCalled has to be called.
  bool has_suspects() const { return suspects_.load(std::memory_order_relaxed) > 0; }
  /// Trusts the connection of a call that was authenticated.
  void KnownCalled(std::string_view peer);

  /// Returns how many connections were ended here.
  uint64_t ended() const { return ended_.load(std::memory_order_relaxed); }

 private:
  struct Connection {
    std::string peer;  // empty: there is no connection, or one that is not counted
    bool known = false;
    bool suspect = false;
    uint64_t suspect_from = 0;  // bytes that were read when it sent so much that it became a suspect
    Clock::time_point counted_since;
    uint32_t calls = 0;
    Clock::time_point read_since;
    uint64_t read_before = 0;  // bytes, until read_since
  };

  /// Waits for bytes on the connections of strangers, until the end. Run by thread_.
  void Watch();
  /// Compares the bytes of a connection with the limits.
  void Inspect(size_t socket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Suspects, or ends, the connections that send much while gRPC holds very many calls.
  void Thin(size_t calls);
  Connection* Find(std::string_view peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Suspect(Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Trust(Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t SocketOf(const Connection& connection) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return static_cast<size_t>(&connection - connections_.data());
  }

  const std::function<bool(const std::string&)> has_known_call_;
  std::atomic<size_t> suspects_{0};
  std::atomic<uint64_t> ended_{0};
  std::atomic<size_t> calls_{0};    // that gRPC holds
  std::atomic<size_t> arrived_{0};  // of all time
  const int events_;                // an epoll of the sockets of strangers
  const int stop_;                  // an eventfd
  Mutex mutex_;
  /// By the numbers of their sockets. Some have ended since: nobody tells when gRPC closes a socket.
  std::vector<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, size_t> sockets_ ABSL_GUARDED_BY(mutex_);  // by peer
  std::thread thread_ ABSL_GUARDED_BY(mutex_);  // runs since the first connection was accepted
  /// Sockets that had much unread when they were inspected, and are to be inspected again soon. Touched by
  /// thread_ only.
  std::vector<size_t> again_;
};

}  // namespace kvstore::server
