#pragma once

#include <rocksdb/write_batch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/rocksdb/engine/family.h"

namespace kvstore::rocks {

/// A delete of up to so many cells deletes them one by one; more are deleted by one range tombstone. Each
/// range tombstone in memory makes the first read after the next one slower, since RocksDB sorts all of them
/// anew. Deleting one by one costs more, but the fifty thousandth delete costs no more than the first.
/// Measured by bench/rows/delete_bench.cc and bench/rows/mass_delete_bench.cc, see docs/performance.md.
inline constexpr size_t kMaxPointDeletes = 1024;
/// The same limit, once a batch deletes kManyPointDeletes cells already, as a delete of many columns with
/// many versions each may do.
inline constexpr size_t kFewPointDeletes = 128;
inline constexpr size_t kManyPointDeletes = 16 * kMaxPointDeletes;

/// When so many range tombstones are in memory, FlushRanges writes them to a file, where they are sorted
/// once. The first read after a new one sorts all of them: 25 us of CPU with 1 of them, 35 with 128, 56 with
/// 256, 93 with 512, some 0.15 us each; the reads after that take 4.8 us, however many there are
/// (bench/rows/delete_bench.cc, ReadAfterRange). So the slowest read costs about twice what it costs with one
/// tombstone, and there is one flush for 256 rows of more than kMaxPointDeletes cells. With a limit of 32,
/// flushes took most of the time of mass deletes (docs/performance.md).
inline constexpr uint32_t kMaxRanges = 256;

/// Adds to `batch` the deletion of all cells with keys in [begin, end) that exist now. The caller holds the
/// row's lock exclusively until the batch is written. Returns how many cells there are; for cells that a
/// range tombstone deletes, one more than the limit. DEADLINE_EXCEEDED or CANCELLED if the thread's call ends
/// before all cells were found.
///
/// ranges   is incremented for each range tombstone.
/// deleted  gets the keys of the cells, unless a range tombstone deletes them; may be null.
absl::StatusOr<uint64_t> DeleteCells(const Family& family, const std::string& begin, const std::string& end,
                                     rocksdb::WriteBatch& batch, uint32_t& ranges,
                                     std::vector<std::string>* deleted = nullptr);

/// Counts range tombstones that were written, and begins a flush of the family if there are too many. Must be
/// called without a row's lock, because it may wait for earlier flushes.
void FlushRanges(Family& family, uint32_t ranges);

}  // namespace kvstore::rocks
