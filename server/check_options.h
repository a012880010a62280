#pragma once

#include "absl/status/status.h"
#include "server/call/options.h"

namespace kvstore::server {

/// Checks the options of a server without serving, and the files that they name: the addresses, the list of
/// tokens, the certificate and its key. INVALID_ARGUMENT says what Server::Start would refuse.
absl::Status CheckOptions(const ServerOptions& options);

}  // namespace kvstore::server
