#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kvstore::cached {

/// A TCP connection whose calls end in time. Boost.Asio's blocking calls have no timeouts, and its others
/// cost more here than the answer of a server on the same switch. Externally synchronised.
class Socket {
 public:
  /// Connects to "host:port". UNAVAILABLE if that fails or takes longer than `timeout`, for all addresses of
  /// the host together. Names are looked up by the system, whose own timeouts apply in addition.
  static absl::StatusOr<Socket> Connect(const std::string& address, std::chrono::milliseconds timeout);
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) = delete;
  Socket(const Socket&) = delete;
  ~Socket();

  // Both fail with CANCELLED if the other side has closed the connection.

  /// Sends all of the bytes.
  absl::Status Send(std::string_view bytes);
  /// Appends what has arrived to `bytes`, at least one byte.
  absl::Status Receive(std::string& bytes);
  /// Returns whether Receive would return at once: bytes have arrived, or the other side has closed the
  /// connection, or it has failed. Never waits.
  bool HasPending() const;
  /// From now on, Send and Receive fail about at this time; each waits no longer than the timeout of Connect.
  void EndAt(std::chrono::steady_clock::time_point end) { end_ = end; }

 private:
  explicit Socket(int file) : file_(file) {}
  /// Waits until the socket is ready for `events` (poll).
  absl::Status Wait(short events);
  /// Makes calls block, for so long at most.
  void Block(std::chrono::milliseconds timeout);
  absl::Status CheckTime() const;

  int file_;
  std::chrono::steady_clock::time_point end_;
};

}  // namespace kvstore::cached
