#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/call/options.h"

namespace kvstore::server {

/// Checks the addresses of the options. INVALID_ARGUMENT has a line for each mistake: a text that is not an
/// address, or an address that other machines can reach without TLS and authentication.
absl::Status CheckAddresses(const ServerOptions& options);

/// Returns UNAVAILABLE if another server answers at one of the "unix:/path" among these addresses.
absl::Status CheckNotTaken(const std::vector<std::string>& listen);

}  // namespace kvstore::server
