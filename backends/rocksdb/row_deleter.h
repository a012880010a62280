#pragma once

#include <rocksdb/write_batch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/rocksdb/family.h"

namespace kvstore::rocks {

/// Up to so many cells are deleted one by one, more by one range tombstone. Each of those in memory makes the
/// read after each next one dearer, since RocksDB sorts all of them anew: deletes one by one cost more, but
/// the fifty thousandth no more than the first. Measured by bench/delete_bench.cc and
/// bench/mass_delete_bench.cc, see docs/performance.md.
inline constexpr size_t kMaxPointDeletes = 1024;
/// The same in a batch that has kManyPointDeletes already, of many columns with many versions each.
inline constexpr size_t kFewPointDeletes = 128;
inline constexpr size_t kManyPointDeletes = 16 * kMaxPointDeletes;

/// So many range tombstones may be in memory: then they go to a file (FlushRanges), where they are sorted
/// once.
inline constexpr uint32_t kMaxRanges = 256;

/// Adds to `batch` the deletion of all cells with keys in [begin, end), which exist now. The caller holds the
/// row's lock exclusively until the batch is written. Returns how many cells there were, or one more than
/// are deleted one by one for those that a range deletes. DEADLINE_EXCEEDED or CANCELLED if the call is over
/// before they were all found, among cells that are deleted already.
///
/// deleted  gets the keys of the cells, unless a range deletes them; may be null.
/// ranges   is counted up by range tombstones.
absl::StatusOr<uint64_t> DeleteCells(const Family& family, const std::string& begin, const std::string& end,
                                     rocksdb::WriteBatch& batch, uint32_t& ranges,
                                     std::vector<std::string>* deleted = nullptr);

/// Counts range tombstones that were written, and begins to write the family's memory to a file if there are
/// too many. Without a row's lock: it may wait, for earlier files to be written.
void FlushRanges(Family& family, uint32_t ranges);

}  // namespace kvstore::rocks
