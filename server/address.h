#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/options.h"

namespace kvstore::server {

/// INVALID_ARGUMENT with a line for each mistake: an address that is none, or one beyond this machine without
/// what protects it.
absl::Status CheckAddresses(const ServerOptions& options);

/// UNAVAILABLE if another server answers at one of the "unix:/path" of these.
absl::Status CheckNotTaken(const std::vector<std::string>& listen);

}  // namespace kvstore::server
