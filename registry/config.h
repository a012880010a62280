#pragma once

#include <filesystem>
#include <string_view>

#include "absl/status/statusor.h"
#include "registry/open.h"
#include "server/options.h"

namespace kvstore {

/// What one file says.
struct Config {
  OpenOptions store;
  ServerOptions server;
};

/// Reads a configuration: a JSON object, in which relative paths begin at `folder`. docs/configuration.md
/// describes its fields. INVALID_ARGUMENT has a line for each field that is wrong, unknown or missing.
absl::StatusOr<Config> ParseConfig(std::string_view text, const std::filesystem::path& folder);

/// The same from a file. NOT_FOUND if there is none, UNAVAILABLE if it cannot be read.
absl::StatusOr<Config> ReadConfig(const std::filesystem::path& file);

}  // namespace kvstore
