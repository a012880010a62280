#include "backends/rocksdb/rows/reclaim.h"

#include <rocksdb/write_batch.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/rocksdb/engine/deleted.h"
#include "backends/rocksdb/engine/status.h"
#include "backends/rocksdb/rows/cell_key.h"
#include "backends/rocksdb/rows/partitions.h"
#include "base/hash.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::rocks {
namespace {

/// A trim writes up to so many deletes under one lock. Each batch counts the newest max_versions again, so
/// for a column that keeps very many versions the batch is a part of those.
constexpr uint64_t kMinBatch = 1024;
constexpr uint64_t kPartOfVersions = 8;
/// How many of those it counts before it looks at the limits of its call.
constexpr uint64_t kVersionsBetweenChecks = 1024;
constexpr uint64_t kReportEvery = 1 << 20;  // bytes
/// A compaction is split into so many ranges, to report progress after each.
constexpr size_t kCompactionSteps = 64;

absl::Status Cancelled() { return absl::CancelledError("stopped; what was reclaimed so far stays so"); }

/// Reads all cells, and trims the columns that have too many.
absl::Status ReclaimSurplus(Engine& engine, const Family& family, uint64_t total, const Progress& progress,
                            uint64_t& trimmed) {
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  options.fill_cache = false;
  options.max_skippable_internal_keys = kMaxDeletedInARow;
  const std::unique_ptr<rocksdb::Iterator> it(engine.db().NewIterator(options, family.handle));
  const uint64_t max_versions = family.settings->max_versions;
  std::string column;
  uint64_t versions = 0;
  uint64_t done = 0;
  uint64_t reported = 0;
  for (it->SeekToFirst();; it->Next()) {
    if (auto status = PassDeleted(*it); !status.ok()) return status;
    if (!it->Valid()) break;
    const std::string_view key = it->key().ToStringView();
    if (key.size() < kTimestampBytes) return absl::DataLossError("a stored key is not the key of a cell");
    const std::string_view here = key.substr(0, key.size() - kTimestampBytes);
    if (here != column) {
      column.assign(here);
      versions = 0;
    }
    if (++versions == max_versions + 1) {
      const auto cells = TrimColumn(engine, family, column);
      if (!cells.ok()) return cells.status();
      trimmed += *cells;
    }
    done += key.size() + it->value().size();
    if (done - reported >= kReportEvery) {
      reported = done;
      if (progress && !progress(std::min(done, total), total * 2)) return Cancelled();
      if (auto status = CheckCall(); !status.ok()) return status;
    }
  }
  return ToStatus(it->status(), "sweep a dataset");
}

/// Compacts all files of the family, which drops expired cells by its filter.
absl::Status ReclaimExpired(Engine& engine, const Family& family, bool rows, uint64_t total,
                            const Progress& progress) {
  rocksdb::CompactRangeOptions options;
  // Compact the last level too, where only the filter removes expired cells; each file once.
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
  options.exclusive_manual_compaction = false;
  // RocksDB only reads the flag, every few cells.
  options.canceled = const_cast<std::atomic<bool>*>(CallScope::Current().cancelled);
  std::vector<Partition> partitions(1);
  if (rows) {
    auto split = PartitionRows(engine, family, kCompactionSteps);
    if (!split.ok()) return split.status();
    partitions = *std::move(split);
  }
  for (size_t i = 0; i < partitions.size(); ++i) {
    if (progress && !progress(total + total * i / partitions.size(), total * 2)) return Cancelled();
    // RocksDB sees a cancellation, and no deadline.
    if (auto status = CheckCall(); !status.ok()) return status;
    std::string begin;
    std::string end;
    AppendEncoded(begin, partitions[i].range.start);
    AppendEncoded(end, partitions[i].range.end);
    const rocksdb::Slice begin_slice(begin);
    const rocksdb::Slice end_slice(end);
    const auto status = engine.db().CompactRange(options, family.handle,
                                                 partitions[i].range.start.empty() ? nullptr : &begin_slice,
                                                 partitions[i].range.end.empty() ? nullptr : &end_slice);
    if (status.IsIncomplete()) return Cancelled();
    if (!status.ok()) return ToStatus(status, "compact a dataset");
  }
  if (progress) progress(total * 2, total * 2);
  return absl::OkStatus();
}

/// Trims one batch of cells under the row's lock, and returns how many it has deleted.
///
/// from  where the batch before has stopped, empty for the first; set to where this one stops, empty if
///       nothing is left.
absl::StatusOr<uint64_t> TrimBatch(Engine& engine, const Family& family, std::string_view column,
                                   uint64_t hash, std::string& from) {
  const auto lock = engine.locks().Exclude(hash);
  // Surplus cells may be visible by the time that they are deleted, if the limit is raised meanwhile.
  const AnswerCache::Change change(engine.answers(), hash);
  // Read under the lock: a put that relies on a raised limit either comes later, or its cells are seen below.
  const uint64_t max_versions = family.settings->max_versions;
  const std::string behind = std::exchange(from, {});
  if (max_versions == 0) return uint64_t{0};
  const uint64_t most = std::max(kMinBatch, max_versions / kPartOfVersions);
  const std::string upper_bound = EndOf(column);
  const rocksdb::Slice bound(upper_bound);
  rocksdb::ReadOptions options;
  options.iterate_upper_bound = &bound;
  options.max_skippable_internal_keys = kMaxDeletedInARow;
  const std::unique_ptr<rocksdb::Iterator> it(engine.db().NewIterator(options, family.handle));
  // Count the newest cells again in each batch: since the one before, all of them may have been deleted, and
  // others put.
  it->Seek(rocksdb::Slice(column.data(), column.size()));
  if (auto status = PassDeleted(*it); !status.ok()) return status;
  for (uint64_t versions = 1; versions < max_versions && it->Valid(); ++versions) {
    it->Next();
    if (auto status = PassDeleted(*it); !status.ok()) return status;
    if (versions % kVersionsBetweenChecks != 0) continue;
    if (auto status = CheckCall(); !status.ok()) return status;
  }
  if (it->Valid() && (behind.empty() || it->key().ToStringView() < behind)) {
    // Skip the tombstones of the batches before.
    behind.empty() ? it->Next() : it->Seek(behind);
  } else if (it->status().ok()) {
    return uint64_t{0};
  }
  rocksdb::WriteBatch batch;
  for (; it->Valid(); it->Next()) {
    if (batch.Count() == most) {
      from = it->key().ToString();
      break;
    }
    if (auto status = batch.Delete(family.handle, it->key()); !status.ok())
      return ToStatus(status, "trim a column");
  }
  if (auto stopped = StoppedAt(*it)) {
    from = *std::move(stopped);
  } else if (!it->status().ok()) {
    return ToStatus(it->status(), "trim a column");
  }
  if (batch.Count() > 0) {
    if (auto status = engine.Write(batch, /*sync=*/false); !status.ok()) return status;
  }
  return uint64_t{batch.Count()};
}

}  // namespace

absl::StatusOr<uint64_t> TrimColumn(Engine& engine, const Family& family, std::string_view column) {
  const auto row_bytes = EncodedSize(column);
  std::string row;
  if (!row_bytes || !Decode(column.substr(0, *row_bytes), row)) {
    return absl::DataLossError("a stored key is not the key of a cell");
  }
  const uint64_t hash = Fnv1a(row, family.settings->incarnation);
  std::string from;
  uint64_t trimmed = 0;
  do {
    const auto batch = TrimBatch(engine, family, column, hash, from);
    if (!batch.ok()) return batch.status();
    trimmed += *batch;
    if (auto status = CheckCall(); !status.ok()) return status;
    // Let threads that wait for the row's lock have it in between.
    std::this_thread::yield();
  } while (!from.empty());
  return trimmed;
}

uint64_t DiskBytes(Engine& engine, const Family& family) {
  uint64_t files = 0;
  uint64_t blobs = 0;
  engine.db().GetIntProperty(family.handle, rocksdb::DB::Properties::kLiveSstFilesSize, &files);
  engine.db().GetIntProperty(family.handle, rocksdb::DB::Properties::kLiveBlobFileSize, &blobs);
  return files + blobs;
}

absl::StatusOr<ReclaimResult> Reclaim(Engine& engine, const Family& family, bool rows,
                                      const Progress& progress) {
  if (auto status = engine.db().Flush({}, family.handle); !status.ok())
    return ToStatus(status, "flush a dataset");
  ReclaimResult result;
  result.bytes_before = DiskBytes(engine, family);
  const uint64_t expired_before = family.settings->expired_cells;
  const uint64_t total = std::max<uint64_t>(result.bytes_before, 1);
  if (rows && family.settings->max_versions != 0) {
    if (auto status = ReclaimSurplus(engine, family, total, progress, result.surplus_cells); !status.ok())
      return status;
  }
  if (auto status = ReclaimExpired(engine, family, rows, total, progress); !status.ok()) return status;
  result.expired_cells = family.settings->expired_cells - expired_before;
  result.bytes_after = DiskBytes(engine, family);
  return result;
}

}  // namespace kvstore::rocks
