#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/options.h"

namespace kvstore::client {

/// The token as it is sent to this address: without the byte order mark that some editors begin files with.
/// Empty if there is none.
///
/// INVALID_ARGUMENT if it is not printable ASCII, with which gRPC would end the process, and if it would go
/// over a connection that is not encrypted to another machine, unless the options say so. No error has any of
/// the token.
absl::StatusOr<std::string> TokenFor(const std::string& address, const ConnectOptions& options);

/// INVALID_ARGUMENT, with this name, if a text that is sent as metadata is not printable ASCII.
absl::Status CheckMetadata(std::string_view name, std::string_view text);

}  // namespace kvstore::client
