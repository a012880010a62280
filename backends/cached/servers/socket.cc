#include "backends/cached/servers/socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "base/address.h"

namespace kvstore::cached {
namespace {

absl::Status ClosedError() { return absl::CancelledError("has closed the connection"); }

absl::Status SystemError(std::string_view what, int error) {
  if (error == EPIPE || error == ECONNRESET) return ClosedError();
  return absl::UnavailableError(fmt::format("{}: {}", what, std::strerror(error)));
}

}  // namespace

absl::StatusOr<Socket> Socket::Connect(const std::string& address, std::chrono::milliseconds timeout) {
  const auto host = HostOf(address);
  if (!host) return absl::InvalidArgumentError(fmt::format("'{}' is not host:port", address));
  const std::string port = address.substr(address.rfind(':') + 1);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host->c_str(), port.c_str(), &hints, &found); error != 0) {
    return absl::UnavailableError(fmt::format("cannot look up '{}': {}", *host, gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> release(found, freeaddrinfo);
  // The addresses of a name share the time: each may take an equal part of what those before it have left, so
  // that one that does not answer does not keep the others from being tried.
  std::ptrdiff_t addresses = 0;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) ++addresses;
  const auto end = std::chrono::steady_clock::now() + timeout;
  absl::Status status = absl::UnavailableError("has no address");
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next, --addresses) {
    const int file =
        socket(one->ai_family, one->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, one->ai_protocol);
    if (file < 0) {
      status = SystemError("cannot make a socket", errno);
      continue;
    }
    Socket connection(file);
    const auto now = std::chrono::steady_clock::now();
    connection.EndAt(now + (end - now) / addresses);
    const int on = 1;
    setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(file, one->ai_addr, one->ai_addrlen) != 0) {
      if (errno != EINPROGRESS) {
        status = SystemError("cannot connect", errno);
        continue;
      }
      if (status = connection.Wait(POLLOUT); !status.ok()) continue;
      int error = 0;
      socklen_t size = sizeof(error);
      getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) {
        status = SystemError("cannot connect", error);
        continue;
      }
    }
    connection.EndAt(end);
    connection.Block(timeout);
    return connection;
  }
  return status;
}

void Socket::Block(std::chrono::milliseconds timeout) {
  // The system ends a call itself then, which saves one that waits before each.
  const auto us = std::chrono::microseconds(timeout).count();
  const timeval limit{.tv_sec = us / 1'000'000, .tv_usec = us % 1'000'000};
  setsockopt(file_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  setsockopt(file_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  fcntl(file_, F_SETFL, fcntl(file_, F_GETFL) & ~O_NONBLOCK);
}

Socket::Socket(Socket&& other) noexcept : file_(std::exchange(other.file_, -1)), end_(other.end_) {}

Socket::~Socket() {
  if (file_ >= 0) close(file_);
}

absl::Status Socket::Wait(short events) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now());
    if (left.count() <= 0) return absl::UnavailableError("does not answer in time");
    pollfd wait{.fd = file_, .events = events, .revents = 0};
    const int ready = poll(&wait, 1, static_cast<int>(left.count()));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return SystemError("cannot wait", errno);
  }
}

absl::Status Socket::CheckTime() const {
  if (std::chrono::steady_clock::now() < end_) return absl::OkStatus();
  return absl::UnavailableError("does not answer in time");
}

absl::Status Socket::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(file_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return absl::UnavailableError("does not take what it is sent in time");
    } else if (errno != EINTR) {
      return SystemError("cannot send", errno);
    }
    if (bytes.empty()) break;
    if (auto status = CheckTime(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Socket::Receive(std::string& bytes) {
  constexpr size_t kPiece = 4096;
  const size_t before = bytes.size();
  for (;;) {
    bytes.resize(before + kPiece);
    const ssize_t received = recv(file_, bytes.data() + before, kPiece, 0);
    const int error = errno;
    bytes.resize(before + static_cast<size_t>(std::max<ssize_t>(received, 0)));
    if (received > 0) return CheckTime();
    if (received == 0) return ClosedError();
    if (error == EAGAIN || error == EWOULDBLOCK) return absl::UnavailableError("does not answer in time");
    if (error != EINTR) return SystemError("cannot receive", error);
    if (auto status = CheckTime(); !status.ok()) return status;
  }
}

bool Socket::HasPending() const {
  char byte = 0;
  ssize_t seen = 0;
  do {
    seen = recv(file_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  } while (seen < 0 && errno == EINTR);
  return seen >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

}  // namespace kvstore::cached
