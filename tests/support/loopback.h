#pragma once

#include <netinet/in.h>

#include <cstdint>

namespace kvstore::testing {

/// Returns the address 127.0.0.1 with a port; with port 0 the system chooses one.
sockaddr_in Loopback(uint16_t port);

/// Returns a port on the loopback interface on which nobody listens.
uint16_t FreePort();

}  // namespace kvstore::testing
