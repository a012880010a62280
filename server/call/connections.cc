#include "server/call/connections.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kvstore::server {

std::string PeerOf(int socket) {
  sockaddr_in6 address{};
  socklen_t size = sizeof(address);
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  if (address.sin6_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return fmt::format("ipv4:{}:{}", text.data(), ntohs(v4.sin_port));
  }
  if (address.sin6_family != AF_INET6) return "";
  const uint16_t port = ntohs(address.sin6_port);
  if (IN6_IS_ADDR_V4MAPPED(&address.sin6_addr)) {
    ::inet_ntop(AF_INET, &address.sin6_addr.s6_addr[12], text.data(), text.size());
    return fmt::format("ipv4:{}:{}", text.data(), port);
  }
  ::inet_ntop(AF_INET6, &address.sin6_addr, text.data(), text.size());
  return fmt::format("ipv6:[{}]:{}", text.data(), port);
}

namespace {

/// Undoes the escapes with which gRPC writes brackets, as in a URI.
std::string WithBrackets(std::string_view peer) {
  std::string plain(peer);
  for (const auto& [escaped, bracket] : {std::pair("%5B", "["), std::pair("%5D", "]")}) {
    if (const size_t at = plain.find(escaped); at != std::string::npos) plain.replace(at, 3, bracket);
  }
  return plain;
}

/// How soon a connection with much unread is inspected again.
constexpr int kAgainMs = 5;
/// While gRPC holds very many calls the connections are compared each time that so many more have arrived.
constexpr size_t kThinEvery = 500;

struct Bytes {
  uint64_t received = 0;  // by the kernel
  uint64_t read = 0;      // of these, by gRPC
};

Bytes BytesFrom(int socket) {
  int unread = 0;
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (::ioctl(socket, FIONREAD, &unread) != 0) return {};
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  // Bytes that arrive between the two system calls count as read.
  const uint64_t received = info.tcpi_bytes_received;
  return {.received = received, .read = received - std::min(received, static_cast<uint64_t>(unread))};
}

}  // namespace

Connections::Connections(std::function<bool(const std::string& peer)> has_known_call)
    : has_known_call_(std::move(has_known_call)),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Connections::~Connections() {
  const uint64_t one = 1;
  if (thread_.joinable() && ::write(stop_, &one, sizeof(one)) == sizeof(one)) thread_.join();
  ::close(events_);
  ::close(stop_);
}

void Connections::Accepted(int socket) {
  std::string peer = PeerOf(socket);
  const MutexLock lock(mutex_);
  const auto number = static_cast<size_t>(socket);
  if (number >= connections_.size()) connections_.resize(number + 1);
  Connection& connection = connections_[number];
  Forget(connection);
  if (peer.empty()) return;
  if (!thread_.joinable()) thread_ = std::thread([this] { Watch(); });
  sockets_[peer] = number;
  connection.peer = std::move(peer);
  connection.read_since = Clock::now();
  // Edge-triggered: an event each time that something arrives, whether what came before was read or not. The
  // kernel removes the socket from the epoll when it is closed.
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.u64 = number}};
  ::epoll_ctl(events_, EPOLL_CTL_ADD, socket, &event);
}

void Connections::Watch() {
  epoll_event stop{.events = EPOLLIN, .data = {.u64 = UINT64_MAX}};
  ::epoll_ctl(events_, EPOLL_CTL_ADD, stop_, &stop);
  std::array<epoll_event, 64> events{};
  for (;;) {
    const int wait = again_.empty() ? -1 : kAgainMs;
    const int count = ::epoll_wait(events_, events.data(), static_cast<int>(events.size()), wait);
    const MutexLock lock(mutex_);
    for (const size_t socket : std::exchange(again_, {})) Inspect(socket);
    for (int i = 0; i < count; ++i) {
      const uint64_t socket = events.at(static_cast<size_t>(i)).data.u64;
      if (socket == UINT64_MAX) return;
      Inspect(socket);
    }
  }
}

void Connections::Inspect(size_t socket) {
  Connection& connection = connections_[socket];
  if (connection.peer.empty() || connection.known) return;
  const Bytes bytes = BytesFrom(static_cast<int>(socket));
  if (bytes.read > kBytes && !connection.suspect) {
    Suspect(connection);
    connection.suspect_from = bytes.read;
  }
  if (connection.known) return;
  // This thread may come so late that calls of known callers have begun and ended meanwhile: from now on they
  // are reported, and until there is time for one more nothing is ended.
  if (bytes.read > std::max(2 * kBytes, connection.suspect_from + kBytes)) {
    End(connection);
  } else if (bytes.received > 2 * kBytes && std::find(again_.begin(), again_.end(), socket) == again_.end()) {
    again_.push_back(socket);
  }
}

void Connections::StrangerCalled(std::string_view peer) {
  const MutexLock lock(mutex_);
  Connection* connection = Find(peer);
  if (connection == nullptr || connection->known) return;
  if (const auto now = Clock::now(); now - connection->counted_since > kCountedFor) {
    connection->counted_since = now;
    connection->calls = 0;
  }
  if (++connection->calls >= kCalls) Suspect(*connection);
  if (connection->calls >= 2 * kCalls && !connection->known) End(*connection);
}

void Connections::CallArrived() {
  const size_t calls = calls_.fetch_add(1, std::memory_order_relaxed) + 1;
  const size_t arrived = arrived_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (calls >= kCrowd && arrived % kThinEvery == 0) Thin(calls);
}

void Connections::Thin(size_t calls) {
  const auto now = Clock::now();
  const MutexLock lock(mutex_);
  for (Connection& connection : connections_) {
    if (connection.peer.empty() || connection.known) continue;
    const uint64_t read = BytesFrom(static_cast<int>(SocketOf(connection))).read;
    if (now - connection.read_since > kCountedFor) {
      connection.read_since = now;
      connection.read_before = read;
      continue;
    }
    if (read < connection.read_before + kFewBytes) continue;
    Suspect(connection);
    if (calls >= 2 * kCrowd && !connection.known) End(connection);
  }
}

void Connections::KnownCalled(std::string_view peer) {
  const MutexLock lock(mutex_);
  Connection* connection = Find(peer);
  if (connection != nullptr && !connection->known) Trust(*connection);
}

Connections::Connection* Connections::Find(std::string_view peer) {
  const auto found = sockets_.find(WithBrackets(peer));
  return found == sockets_.end() ? nullptr : &connections_[found->second];
}

void Connections::Forget(Connection& connection) {
  if (connection.suspect) suspects_.fetch_sub(1, std::memory_order_relaxed);
  // The peer's entry may be that of a later connection, over another socket.
  const auto found = sockets_.find(connection.peer);
  if (found != sockets_.end() && found->second == SocketOf(connection)) sockets_.erase(found);
  connection = {};
}

void Connections::Suspect(Connection& connection) {
  if (connection.suspect) return;
  // From now on has_suspects() has calls of known callers reported.
  connection.suspect = true;
  suspects_.fetch_add(1, std::memory_order_relaxed);
  // A caller that was authenticated before this one was a suspect counts if its call is still open.
  if (has_known_call_(connection.peer)) Trust(connection);
}

void Connections::Trust(Connection& connection) {
  connection.known = true;
  if (std::exchange(connection.suspect, false)) suspects_.fetch_sub(1, std::memory_order_relaxed);
  ::epoll_ctl(events_, EPOLL_CTL_DEL, static_cast<int>(SocketOf(connection)), nullptr);
}

void Connections::End(Connection& connection) {
  // The descriptor may belong to another file by now. The duplicate is what is compared and what is ended.
  const int mine = ::dup(static_cast<int>(SocketOf(connection)));
  if (mine < 0) return;
  if (PeerOf(mine) == connection.peer) {
    // When gRPC closes the socket, the kernel resets the connection: it keeps nothing of it, and the other
    // side does not wait to send more.
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(mine, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    ::shutdown(mine, SHUT_RDWR);
    // Megabytes may have arrived that gRPC has not read yet, and should not.
    while (::recv(mine, nullptr, size_t{1} << 20, MSG_TRUNC | MSG_DONTWAIT) > 0) {
    }
    ended_.fetch_add(1, std::memory_order_relaxed);
  }
  ::close(mine);
  Forget(connection);
}

}  // namespace kvstore::server
