#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kvstore_api/connect.h"

namespace kvstore::client {

/// Returns the options' token as it is sent to this address: without the byte order mark that some editors
/// put at the beginning of files. Empty if there is no token.
///
/// INVALID_ARGUMENT if it is not printable ASCII, for which gRPC would end the process, or if it would go to
/// another machine over a connection that is not encrypted, unless the options allow that. No error quotes
/// any part of the token.
absl::StatusOr<std::string> TokenFor(const std::string& address, const ConnectOptions& options);

/// Returns INVALID_ARGUMENT, with this name, if a text that is to be sent as metadata is not printable ASCII.
absl::Status CheckMetadata(std::string_view name, std::string_view text);

}  // namespace kvstore::client
