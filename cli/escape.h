#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

/// Bytes on a terminal: printable UTF-8 as it is, all else as \xNN, and \ as \\.
namespace kvstore::cli {

std::string Escape(std::string_view bytes);

/// Undoes Escape. INVALID_ARGUMENT for a \ that begins neither \\ nor \xNN.
absl::StatusOr<std::string> Unescape(std::string_view text);

}  // namespace kvstore::cli
