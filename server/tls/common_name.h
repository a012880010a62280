#pragma once

#include <openssl/ssl.h>

#include <string>

namespace kvstore::server {

/// Returns the common name of the client's certificate, which the handshake has verified; empty if there is
/// none.
std::string CommonNameOf(const SSL* connection);

}  // namespace kvstore::server
