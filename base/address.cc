#include "base/address.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstring>

namespace kvstore {

std::optional<std::string> HostOf(std::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = address.substr(0, colon);
  const std::string_view port = address.substr(colon + 1);
  unsigned number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size() || number > 65535) return std::nullopt;
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || (!bracketed && host.find(':') != std::string_view::npos)) return std::nullopt;
  return std::string(host);
}

bool IsLocal(std::string_view address) {
  if (address.starts_with(kUnixPrefix)) return true;
  const auto host = HostOf(address);
  if (!host) return false;
  if (*host == "localhost") return true;
  in_addr v4{};
  if (::inet_pton(AF_INET, host->c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, host->c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

bool IsListening(std::string_view address) {
  if (!address.starts_with(kUnixPrefix)) return false;
  const std::string_view path = address.substr(kUnixPrefix.size());
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(name.sun_path)) return false;
  std::memcpy(name.sun_path, path.data(), path.size());
  // Do not wait for a server that does not accept: it is listening, too.
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return false;
  const bool connected = ::connect(socket, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0;
  const bool taken = connected || errno == EAGAIN;
  ::close(socket);
  return taken;
}

}  // namespace kvstore
