#pragma once

#include <netinet/in.h>

#include <cstdint>

namespace kvstore::testing {

/// Returns the address 127.0.0.1 with a port; with port 0 the system chooses one.
sockaddr_in Loopback(uint16_t port);

/// Returns a port on the loopback interface on which nobody listens. The system gives it to nobody: it lies
/// below the range from which outgoing connections get theirs (ip_local_port_range), since otherwise one of
/// another test's many connections would take it before its server starts, or while that is being restarted.
/// Nor does FreePort give it to anybody else before this process ends.
uint16_t FreePort();

}  // namespace kvstore::testing
