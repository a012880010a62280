#include "server/grpc/acceptor.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "server/call/unsent.h"

namespace kvstore::server {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr int kMaxUnsent = 256 << 10;
/// How long it waits when there is no descriptor to accept, and so to refuse, a connection with.
constexpr int kPauseMs = 100;
/// The shortest time between two log lines about refused connections.
constexpr std::chrono::seconds kQuiet{60};

absl::Status CannotListen(const std::string& address, int error) {
  return absl::UnavailableError(
      fmt::format("cannot listen on {}: {}", address, std::generic_category().message(error)));
}

int FirstForOthers() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > (rlim_t{1} << 30)) return 1 << 30;
  return static_cast<int>(static_cast<double>(limit.rlim_cur) * Acceptor::kShare);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Listen(const std::vector<std::string>& addresses) {
  std::unique_ptr<Acceptor> acceptor(new Acceptor);
  for (const std::string& address : addresses) {
    if (auto status = acceptor->ListenOn(address); !status.ok()) return status;
  }
  return acceptor;
}

Acceptor::Acceptor() : limit_(FirstForOthers()), stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Acceptor::~Acceptor() {
  Stop();
  if (stop_ >= 0) ::close(stop_);
}

absl::Status Acceptor::ListenOn(const std::string& address) {
  return address.starts_with(kUnix) ? ListenUnix(address) : ListenTcp(address);
}

absl::Status Acceptor::ListenUnix(const std::string& address) {
  const std::string file = address.substr(kUnix.size());
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (file.size() >= sizeof(name.sun_path)) return CannotListen(address, ENAMETOOLONG);
  std::memcpy(name.sun_path, file.data(), file.size());
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) return CannotListen(address, errno);
  listeners_.push_back(listener);
  struct stat there {};
  if (::lstat(file.c_str(), &there) == 0 && S_ISSOCK(there.st_mode)) ::unlink(file.c_str());
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0 ||
      ::listen(listener, SOMAXCONN) != 0) {
    return CannotListen(address, errno);
  }
  struct stat mine {};
  if (::lstat(file.c_str(), &mine) == 0) files_.push_back({file, mine.st_dev, mine.st_ino});
  addresses_.push_back(address);
  return absl::OkStatus();
}

absl::Status Acceptor::ListenTcp(const std::string& address) {
  const size_t colon = address.rfind(':');
  const std::string named = address.substr(0, colon);
  const bool bracketed = named.starts_with('[') && named.ends_with(']');
  const std::string host = bracketed ? named.substr(1, named.size() - 2) : named;
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &wanted, &found);
      error != 0) {
    return absl::UnavailableError(fmt::format("cannot listen on {}: {}", address, ::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  // A name may have several addresses, which get the same port. A machine may be without IPv6.
  in_port_t port = 0;
  int error = EADDRNOTAVAIL;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    auto* const v4 = reinterpret_cast<sockaddr_in*>(one->ai_addr);
    auto* const v6 = reinterpret_cast<sockaddr_in6*>(one->ai_addr);
    if (port != 0) (one->ai_family == AF_INET ? v4->sin_port : v6->sin6_port) = port;
    const int listener = ::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0) {
      error = errno;
      continue;
    }
    const int on = 1;
    const int off = 0;
    // Allows the port of a server that has just ended, but not one that another is listening on.
    ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    // "[::]" listens for IPv4, too.
    if (one->ai_family == AF_INET6) ::setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (::bind(listener, one->ai_addr, one->ai_addrlen) != 0 || ::listen(listener, SOMAXCONN) != 0) {
      error = errno;
      ::close(listener);
      if (error == EADDRINUSE) return CannotListen(address, error);
      continue;
    }
    listeners_.push_back(listener);
    sockaddr_in6 bound{};
    socklen_t size = sizeof(bound);
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &size);
    port = bound.sin6_family == AF_INET ? reinterpret_cast<sockaddr_in*>(&bound)->sin_port : bound.sin6_port;
  }
  if (port == 0) return CannotListen(address, error);
  addresses_.push_back(fmt::format("{}:{}", named, ntohs(port)));
  return absl::OkStatus();
}

void Acceptor::Start(std::function<void(int, int)> serve) {
  serve_ = std::move(serve);
  thread_ = std::thread([this] { Run(); });
}

void Acceptor::Stop() {
  const uint64_t one = 1;
  if (stop_ >= 0 && ::write(stop_, &one, sizeof(one)) < 0) return;
  if (thread_.joinable()) thread_.join();
  // The files are removed first. As soon as a socket is closed another server may replace its file, which
  // must stay then; and clients that find the file of a closed socket are refused at once, while some wait
  // for a file that is not there yet.
  for (const SocketFile& file : std::exchange(files_, {})) {
    struct stat there {};
    const bool mine =
        ::lstat(file.path.c_str(), &there) == 0 && there.st_dev == file.device && there.st_ino == file.inode;
    if (mine) ::unlink(file.path.c_str());
  }
  for (const int listener : std::exchange(listeners_, {})) ::close(listener);
}

void Acceptor::Run() {
  std::vector<pollfd> polled;
  for (const int listener : listeners_) polled.push_back({.fd = listener, .events = POLLIN, .revents = 0});
  polled.push_back({.fd = stop_, .events = POLLIN, .revents = 0});
  while (polled.back().revents == 0) {
    if (::poll(polled.data(), polled.size(), -1) < 0) continue;
    for (size_t i = 0; i + 1 < polled.size(); ++i) {
      if (polled[i].revents != 0) Accept(polled[i].fd);
    }
  }
}

void Acceptor::Accept(int listener) {
  const int connection = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (connection < 0) {
    if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS) return;
    pollfd stop{.fd = stop_, .events = POLLIN, .revents = 0};
    ::poll(&stop, 1, kPauseMs);
    return;
  }
  // The system gives the lowest free number, so this number says how many descriptors are in use.
  if (connection >= limit_) {
    ::close(connection);
    refused_.fetch_add(1, std::memory_order_relaxed);
    if (const auto now = std::chrono::steady_clock::now(); now >= next_line_) {
      next_line_ = now + kQuiet;
      spdlog::warn(
          "connections: refused, since {} file descriptors are in use: raise the limit (LimitNOFILE)",
          limit_);
    }
    return;
  }
  const int on = 1;
  ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // no effect on a unix socket
  LimitUnsent(connection, kMaxUnsent);
  serve_(listener, connection);
}

}  // namespace kvstore::server
