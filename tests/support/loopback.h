#pragma once

#include <netinet/in.h>

#include <cstdint>

namespace kvstore::testing {

/// 127.0.0.1, and a port; 0 lets the system choose one.
sockaddr_in Loopback(uint16_t port);

/// A port on the loopback interface that nobody listens on.
uint16_t FreePort();

}  // namespace kvstore::testing
