#include "tests/support/loopback.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>

namespace kvstore::testing {
namespace {

bool Binds(int socket, const sockaddr* address, size_t size) {
  return socket >= 0 && ::bind(socket, address, static_cast<socklen_t>(size)) == 0;
}

bool IsFree(uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(port);
  const bool free = Binds(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  ::close(socket);
  return free;
}

/// Takes a port for this process, until it ends, by a name in Linux's abstract namespace, which only one
/// socket can have (man 7 unix). False if it is taken already.
bool Take(uint16_t port) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const std::string name = fmt::format("kvstore-test-port-{}", port);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // The first byte stays 0.
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  if (Binds(socket, reinterpret_cast<const sockaddr*>(&address),
            offsetof(sockaddr_un, sun_path) + 1 + name.size())) {
    return true;
  }
  ::close(socket);
  return false;
}

}  // namespace

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

uint16_t FreePort() {
  // Below are the ports that the pages of docs/ and ./dev up name, which run beside this.
  constexpr uint16_t kFirst = 18'000;
  constexpr uint16_t kEnd = 32'768;
  // Programs that run beside this one begin elsewhere.
  std::random_device random;
  std::uniform_int_distribution<uint16_t> ports(kFirst, kEnd - 1);
  for (int tries = 0; tries < 1'000; ++tries) {
    const uint16_t port = ports(random);
    if (Take(port) && IsFree(port)) return port;
  }
  throw std::runtime_error("no free port");
}

}  // namespace kvstore::testing
