#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "blobstore/s3_options.h"
#include "json/json_fields.h"

namespace kvstore {

/// Where a store's backups are, and how a server makes them.
struct BackupConfig {
  std::string to;            ///< As for OpenBlobStore: "file:DIR" or "s3://BUCKET/PREFIX".
  uint64_t every_ms = 0;     ///< From one backup by the server to the next; 0: it makes none.
  size_t keep = 0;           ///< The server prunes all but so many backups; 0: it prunes none.
  bool log = false;          ///< The server sends the log of writes, too, some seconds behind them.
  uint64_t bytes_per_s = 0;  ///< A backup reads at most so many bytes a second; 0: no such limit.
  S3Options s3;
};

/// Reads the field "backup" of a configuration. Mistakes are recorded in `fields`.
///
/// folder  relative paths begin here, also that of "file:DIR".
BackupConfig ReadBackupConfig(JsonFields& fields, const std::filesystem::path& folder);

}  // namespace kvstore
