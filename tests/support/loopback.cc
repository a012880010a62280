#include "tests/support/loopback.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <stdexcept>

namespace kvstore::testing {

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
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(port);
    const bool free =
        socket >= 0 && ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    ::close(socket);
    if (free) return port;
  }
  throw std::runtime_error("no free port");
}

}  // namespace kvstore::testing
