#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "assembly/backup_config.h"
#include "assembly/built_in_types.h"
#include "kvstore_api/open.h"
#include "operate/options.h"
#include "server/call/options.h"

namespace kvstore {

/// The contents of a configuration file, in parts that know nothing of each other.
struct Config {
  OpenOptions store;     ///< The store's parts: its directory, its backends, and where its catalog is.
  ServerOptions server;  ///< How `kv serve` serves it: addresses, TLS, tokens, limits.
  std::optional<BackupConfig> backup;  ///< Where the backups of its embedded engine are.
  operate::OperateOptions operate;     ///< How `kv operate` looks after its fleet.
};

/// Reads a configuration: a JSON object, whose fields docs/configuration.md describes.
///
/// folder  relative paths in the configuration begin here.
/// types   the types that its backends may have.
///
/// INVALID_ARGUMENT has a line for each field that is wrong, unknown or missing, with the field's path
/// ("config: backends.main.cache_bytes: ..."). Files that hold secrets are read; nothing else is opened.
absl::StatusOr<Config> ParseConfig(std::string_view text, const std::filesystem::path& folder,
                                   const BackendTypes& types = BuiltInBackendTypes());

/// As ParseConfig with the text of a file, whose folder is where relative paths begin. NOT_FOUND if there is
/// no such file, UNAVAILABLE if it cannot be read.
absl::StatusOr<Config> ReadConfig(const std::filesystem::path& file);

}  // namespace kvstore
