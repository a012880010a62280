#pragma once

#include <filesystem>
#include <string_view>

#include "absl/status/statusor.h"
#include "registry/open.h"

namespace kvstore {

/// Reads a configuration: a JSON object, in which relative paths begin at `folder`. docs/configuration.md
/// describes its fields. INVALID_ARGUMENT names the field that is wrong, unknown or missing.
absl::StatusOr<OpenOptions> ParseConfig(std::string_view text, const std::filesystem::path& folder);

/// The same from a file. NOT_FOUND if it cannot be read.
absl::StatusOr<OpenOptions> ReadConfig(const std::filesystem::path& file);

}  // namespace kvstore
