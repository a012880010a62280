#pragma once

#include <rocksdb/db.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "backend_api/checkpoint.h"
#include "backends/rocksdb/engine/data_dir.h"

namespace kvstore::rocks {

/// Says whether a store's directory must have a catalog of its datasets.
enum class CatalogFile : uint8_t {
  kMayLack,  ///< There may be no catalog: the store has never had a dataset.
  kNeeded,   ///< FAILED_PRECONDITION if there is no catalog: nothing else explains the data.
  /// It need not: the catalog is in ZooKeeper. A catalog in the directory is from another time, and is left
  /// out, as are records of migrations.
  kElsewhere,
};

/// Makes a checkpoint of a store's directory, whose database is `db`: the mark, the catalog, the records of
/// migrations, and the database. Table and blob files are hard links; the rest is copied. Contract and errors
/// as Engine::MakeCheckpoint.
///
/// number     names the checkpoint's folder; no other checkpoint of this process has it.
/// log_bytes  the size of the database's logs (Engine::Logs).
absl::StatusOr<std::unique_ptr<Checkpoint>> CheckpointDirectory(const DataDir& dir, rocksdb::DB& db,
                                                                uint64_t number, CatalogFile catalog,
                                                                uint64_t log_bytes);

/// Reads the files of a store's directory that say what its data is: the catalog and the records of
/// migrations. Returns their texts by their paths in the directory.
absl::StatusOr<std::map<std::string, std::string>> ReadStoreFiles(const DataDir& dir, CatalogFile catalog);

}  // namespace kvstore::rocks
