#pragma once

#include <rocksdb/write_batch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/rocksdb/family.h"

namespace kvstore::rocks {

/// Up to so many cells are deleted one by one, more by one range tombstone. The write of a range costs as
/// much as that of about 128 cells, because the next read sorts all range tombstones in memory anew; scans
/// pass over a range faster than over cells. Measured by bench/delete_bench.cc, see docs/performance.md.
inline constexpr size_t kMaxPointDeletes = 128;

/// Adds to `batch` the deletion of all cells with keys in [begin, end), which exist now. The caller holds the
/// row's lock exclusively until the batch is written. Returns how many cells there were, or kMaxPointDeletes
/// + 1 for more.
///
/// deleted  gets the keys of the cells, if they were so few; may be null.
absl::StatusOr<uint64_t> DeleteCells(const Family& family, const std::string& begin, const std::string& end,
                                     rocksdb::WriteBatch& batch, std::vector<std::string>* deleted = nullptr);

}  // namespace kvstore::rocks
