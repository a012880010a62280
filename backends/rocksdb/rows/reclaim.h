#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "backends/rocksdb/engine.h"
#include "kvstore_api/types.h"

namespace kvstore::rocks {

/// Deletes the cells of one column, given as enc(row) enc(column), beyond the newest max_versions, and
/// returns how many. Looks at all that is stored under the row's lock, and deletes only cells that
/// max_versions newer, unexpired ones hide: such a cell shows again only if those are deleted, and a delete
/// of the column or row takes it along.
absl::StatusOr<uint64_t> TrimColumn(Engine& engine, const Family& family, std::string_view column);

/// Removes expired and surplus cells of a dataset from disk.
absl::StatusOr<ReclaimResult> Reclaim(Engine& engine, const Family& family, bool rows,
                                      const Progress& progress);

/// Bytes of the family's files.
uint64_t DiskBytes(Engine& engine, const Family& family);

}  // namespace kvstore::rocks
