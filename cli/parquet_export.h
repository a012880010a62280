#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/backup_source.h"
#include "cli/command.h"

namespace kvstore::cli {

/// The arguments of kv export --format parquet.
struct ParquetExport {
  std::string dataset;
  std::string to;                    ///< DIR, file:DIR or s3://BUCKET/PREFIX.
  std::vector<std::string> columns;  ///< "NAME" or "NAME:TYPE"
  bool text = false;
  std::string token;
  std::string
      since;  ///< The ID of an export in the same place, of which the changes are exported; empty: all.
  uint64_t at_ms = 0;  ///< 0: as it is now or, from a backup, as that has it.
  BackupSource from;
  bool from_backup = false;  ///< Whether a backup is exported: `from` or `at_ms` was given.
  size_t lanes = 0;
};

/// Exports a dataset as Parquet files, and prints what was written. Throws Failure.
void ExportParquet(const ParquetExport& told, const Globals& globals);

}  // namespace kvstore::cli
