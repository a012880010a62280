#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace kvstore::server {

/// Has the system keep at most so many bytes of what a client's machine has no room for yet: they would be
/// memory that nobody counts, and would look as if the client had taken them. No effect on a unix socket.
inline void LimitUnsent(int connection, int bytes) {
  ::setsockopt(connection, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof(bytes));
}

}  // namespace kvstore::server
