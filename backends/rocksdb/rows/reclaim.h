#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "backends/rocksdb/engine/engine.h"
#include "kvstore_api/types.h"

namespace kvstore::rocks {

/// Deletes the cells of one column, given as enc(row) enc(column), beyond the newest max_versions, and
/// returns how many there were. It reads all that is stored, under the row's lock, and deletes only cells
/// that max_versions newer, unexpired cells hide: such a cell could show again only if those were deleted,
/// and a delete of the column or row removes it as well.
absl::StatusOr<uint64_t> TrimColumn(Engine& engine, const Family& family, std::string_view column);

/// Removes expired and surplus cells of a dataset from disk: trims columns that are too long, then compacts
/// the files, which drops expired cells.
///
/// rows      whether the dataset has cells; else only the files are compacted.
/// progress  called now and then with bytes done and in all; CANCELLED if it returns false. May be null.
absl::StatusOr<ReclaimResult> Reclaim(Engine& engine, const Family& family, bool rows,
                                      const Progress& progress);

/// Bytes of the family's files on disk, blobs included.
uint64_t DiskBytes(Engine& engine, const Family& family);

}  // namespace kvstore::rocks
