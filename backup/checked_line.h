#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

/// Two lines: one of JSON, and {"sha256": "..."} of it, by which damage is found.
namespace kvstore::backup {

/// Returns the two lines for a line, which is given without its end.
std::string WithChecksumLine(const std::string& line);
/// Returns the first of two lines if the second has its checksum; DATA_LOSS, with the problem, otherwise.
absl::StatusOr<std::string_view> CheckedLine(std::string_view lines);

}  // namespace kvstore::backup
