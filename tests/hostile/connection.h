#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/support/loopback.h"

namespace kvstore::testing {

/// A TCP connection to a port of this machine, over which any bytes can be sent.
class Connection {
 public:
  explicit Connection(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in address = Loopback(port);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  ~Connection() { ::close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Returns false if the other side has closed the connection.
  bool Send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  /// Ends the direction to the other side.
  void EndSending() const { ::shutdown(socket_, SHUT_WR); }
  /// Has the connection reset when it is closed, instead of ended.
  void ResetOnClose() const {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  }
  /// Ends both directions.
  void End() const { ::shutdown(socket_, SHUT_RDWR); }
  /// Waits for bytes, and returns those that have arrived; empty if the other side has closed the connection.
  std::string Read() const {
    std::array<char, 4096> buffer{};
    const ssize_t size = ::recv(socket_, buffer.data(), buffer.size(), 0);
    return {buffer.data(), size > 0 ? static_cast<size_t>(size) : 0};
  }
  /// Returns everything that arrives until the other side closes the connection.
  std::string ReadAll() const {
    std::string text;
    for (std::string more = Read(); !more.empty(); more = Read()) text += more;
    return text;
  }
  /// Returns whether nothing has arrived, and the connection is still open.
  bool IsOpen() const {
    pollfd polled{.fd = socket_, .events = POLLIN, .revents = 0};
    return ::poll(&polled, 1, 0) == 0;
  }

 private:
  const int socket_;
};

/// Returns the whole answer to a GET over HTTP/1.1.
inline std::string HttpGet(uint16_t port, const std::string& path) {
  const Connection connection(port);
  connection.Send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  return connection.ReadAll();
}

}  // namespace kvstore::testing
