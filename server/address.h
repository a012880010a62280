#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/options.h"

namespace kvstore::server {

/// Whether only this machine reaches an address: "127.x.x.x:port", "[::1]:port", "localhost:port",
/// "unix:/path".
bool IsLocal(std::string_view address);

/// INVALID_ARGUMENT with a line for each mistake: an address that is none, or one beyond this machine without
/// what protects it.
absl::Status CheckAddresses(const ServerOptions& options);

}  // namespace kvstore::server
