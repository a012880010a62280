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

/// Makes a checkpoint of a store's directory, whose database is `db`: the mark, the catalog, the records of
/// migrations, and the database. Table and blob files are hard links; the rest is copied. Contract and errors
/// as Engine::MakeCheckpoint.
///
/// number        names the checkpoint's folder; no other checkpoint of this process has it.
/// has_datasets  whether the database has data that only a catalog can explain.
absl::StatusOr<std::unique_ptr<Checkpoint>> CheckpointDirectory(const DataDir& dir, rocksdb::DB& db,
                                                                uint64_t number, bool has_datasets);

/// Reads the files of a store's directory that say what its data is: the catalog and the records of
/// migrations. Returns their texts by their paths in the directory.
///
/// has_datasets  FAILED_PRECONDITION if there is no catalog.
absl::StatusOr<std::map<std::string, std::string>> ReadStoreFiles(const DataDir& dir, bool has_datasets);

}  // namespace kvstore::rocks
