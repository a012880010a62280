#include "backends/rocksdb/rows/row_store.h"

#include <rocksdb/write_batch.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "backend_api/outcome.h"
#include "backend_api/prompt_scope.h"
#include "backend_api/row_rules.h"
#include "backend_api/scan_budget.h"
#include "backends/rocksdb/engine/recorder.h"
#include "backends/rocksdb/engine/status.h"
#include "backends/rocksdb/rows/cell_key.h"
#include "backends/rocksdb/rows/partitions.h"
#include "backends/rocksdb/rows/row_answer.h"
#include "backends/rocksdb/rows/row_deleter.h"
#include "backends/rocksdb/rows/row_reader.h"
#include "backends/rocksdb/rows/row_scan.h"
#include "base/hash.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::rocks {
namespace {

/// Puts of a batch are written in groups of up to about this many bytes,
constexpr size_t kMaxGroupBytes = size_t{1} << 20;
// and of so many rows, each of which may take a lock: more rows in a group save little of the write, and make
// other writers wait longer.
constexpr size_t kMaxGroupRows = 32;
/// Puts of more cells do not bring kept answers up to date: the next reads do.
constexpr size_t kMaxUpdatedCells = 32;

/// A batch whose memory the next put of this thread reuses, unless the put was so large that too much memory
/// would be retained.
class ScratchBatch {
 public:
  ScratchBatch() { Batch().Clear(); }
  ~ScratchBatch() {
    if (Batch().GetDataSize() > kMaxGroupBytes) Batch() = rocksdb::WriteBatch();
  }
  rocksdb::WriteBatch& operator*() { return Batch(); }

 private:
  static rocksdb::WriteBatch& Batch() {
    static thread_local rocksdb::WriteBatch batch;
    return batch;
  }
};

/// Takes a stripe shared. In a PromptScope the result holds no lock if it would have to wait for it.
RowLocks::SharedLock ShareStripe(RowLocks& locks, size_t stripe) {
  return IsPrompt() ? locks.TryShareStripe(stripe) : locks.ShareStripe(stripe);
}

/// Adds the deletion of single cells of a row, whose enc(row) is `prefix`.
absl::Status AddCellDeletes(const Family& family, const std::string& prefix,
                            const std::vector<CellName>& cells, Recorder& recorder,
                            rocksdb::WriteBatch& batch) {
  if (family.settings->max_versions != 0) {
    return absl::FailedPreconditionError(
        "cells: single cells can be deleted only where all versions are kept (max_versions = 0)");
  }
  for (const CellName& cell : cells) {
    std::string key = prefix;
    AppendEncoded(key, cell.column);
    AppendTimestamp(key, cell.timestamp);
    if (const auto status = batch.Delete(family.handle, key); !status.ok())
      return ToStatus(status, "delete cells");
    key.resize(key.size() - kTimestampBytes);
    if (auto status = recorder.Add(batch, key); !status.ok()) return status;
  }
  return absl::OkStatus();
}

/// Adds the deletion of columns of a row; increments `ranges` for each range tombstone.
absl::Status AddColumnDeletes(const Family& family, const std::string& prefix,
                              const std::vector<std::string>& columns, Recorder& recorder,
                              rocksdb::WriteBatch& batch, uint32_t& ranges) {
  for (const std::string& column : columns) {
    std::string begin = prefix;
    AppendEncoded(begin, column);
    const auto deleted = DeleteCells(family, begin, EndOf(begin), batch, ranges);
    if (!deleted.ok()) return deleted.status();
    if (auto status = recorder.Add(batch, begin); !status.ok()) return status;
  }
  return absl::OkStatus();
}

/// Adds the deletion of a whole row; increments `ranges` if a range tombstone deletes it.
absl::Status AddRowDelete(const Family& family, const std::string& prefix, Recorder& recorder,
                          rocksdb::WriteBatch& batch, uint32_t& ranges) {
  std::vector<std::string> keys;
  const auto deleted =
      DeleteCells(family, prefix, EndOf(prefix), batch, ranges, recorder.records() ? &keys : nullptr);
  if (!deleted.ok()) return deleted.status();
  if (ranges > 0) {
    // One entry stands for the whole row.
    if (auto status = recorder.Add(batch, prefix); !status.ok()) return status;
  }
  std::string_view last;
  for (const std::string& key : keys) {
    const std::string_view unit = std::string_view(key).substr(0, key.size() - kTimestampBytes);
    if (unit == last) continue;
    if (auto status = recorder.Add(batch, unit); !status.ok()) return status;
    last = unit;
  }
  return absl::OkStatus();
}

}  // namespace

uint64_t RocksRowStore::Hash(std::string_view row) const {
  return Fnv1a(row, family_->settings->incarnation);
}

// ---- reading ----

absl::StatusOr<RowPage> RocksRowStore::Get(std::string_view row, const ReadOptions& options,
                                           const std::optional<RowPosition>& after) {
  if (auto status = family_->gate.CheckRead(); !status.ok()) return status;
  std::vector<std::string> columns;
  RowQuery query;
  if (options.columns) {
    columns = SortedColumns(*options.columns);
    query.columns = &columns;
  }
  query.versions = options.versions;
  query.limit = options.limit;
  query.max_bytes = options.max_bytes;
  query.max_examined = std::min(query.max_examined, ScanBudgetLeft());
  // The next read of this thread reuses the memory of these.
  static thread_local std::string key;
  AnswerCache* answers = after || options.time_range != TimeRange() ? nullptr : engine_->answers();
  // The key says which settings hold, so it is made before they are read.
  if (answers != nullptr && (!MakeAnswerKey(*family_, row, key) ||
                             !std::all_of(columns.begin(), columns.end(),
                                          [](const std::string& column) { return AddColumn(key, column); })))
    answers = nullptr;
  query.SetVisibility(options.time_range, *family_->settings);
  if (answers == nullptr) return ReadPage(row, query, after ? &*after : nullptr);

  const uint64_t hash = Hash(row);
  if (const auto found = answers->Find(hash, key)) {
    if (auto items = DecodeAnswer(found->answer(), query)) {
      answers->CountRead(/*served=*/true);
      return RowPage{.items = *std::move(items)};
    }
  }
  answers->CountRead(/*served=*/false);
  const auto before = answers->BeforeRead(hash);
  auto page = ReadPage(row, query, nullptr);
  if (before && page.ok() && !page->next && !page->items.empty()) {
    if (std::string answer = EncodeAnswer(page->items, query); !answer.empty())
      answers->Add(*before, key, std::move(answer));
  }
  return page;
}

absl::StatusOr<RowPage> RocksRowStore::ReadPage(std::string_view row, const RowQuery& query,
                                                const RowPosition* after) {
  // The next read of this thread reuses the memory of these.
  static thread_local std::string prefix;
  static thread_local std::string upper_bound;
  prefix.clear();
  AppendEncoded(prefix, row);
  upper_bound = prefix;
  upper_bound.back() = kAfterEnd;
  const auto it = family_->iterators->Acquire(prefix, upper_bound);

  RowPage page;
  RowReader reader(*it);
  auto next = reader.Read(prefix, query, after, /*positioned=*/false, page.items);
  if (!next.ok()) return next.status();
  page.next = *std::move(next);
  return page;
}

std::vector<absl::StatusOr<RowPage>> RocksRowStore::GetMany(std::span<const RowRead> reads) {
  return RowStore::GetMany(reads);
}

absl::StatusOr<std::unique_ptr<RowScan>> RocksRowStore::Scan(const RowRange& range,
                                                             const ScanOptions& options,
                                                             const std::optional<ScanPosition>& after) {
  if (!range.shard.empty()) {
    return absl::InvalidArgumentError(
        "partition: an embedded store has no shards; give start_row and end_row");
  }
  if (auto status = family_->gate.CheckRead(); !status.ok()) return status;
  return std::make_unique<RocksRowScan>(engine_, family_, range, options, after);
}

absl::StatusOr<std::vector<Partition>> RocksRowStore::Partitions(size_t wanted) {
  if (auto status = family_->gate.CheckRead(); !status.ok()) return status;
  return PartitionRows(*engine_, *family_, wanted);
}

// ---- writing ----

void RocksRowStore::UpdateAnswers(std::string_view row, uint64_t hash, const AnswerCache::Change& change,
                                  std::span<const CellWrite> cells, uint64_t assigned) {
  AnswerCache* const answers = engine_->answers();
  // Others have no answers, or none that is worth the time.
  if (answers == nullptr || cells.size() > kMaxUpdatedCells || !answers->WasReadLately(hash)) return;
  static thread_local std::string key;
  const auto update = [&] {
    const auto before = answers->FindBefore(change, key);
    if (!before) return;
    if (auto after = AnswerAfterPut(before->answer(), cells, assigned, *family_->settings); !after.empty())
      answers->AddAfter(change, key, std::move(after));
  };
  if (!MakeAnswerKey(*family_, row, key)) return;
  update();
  std::array<std::string_view, kMaxUpdatedCells> columns;
  const auto end = std::transform(cells.begin(), cells.end(), columns.begin(),
                                  [](const CellWrite& cell) { return std::string_view(cell.column); });
  std::sort(columns.begin(), end);
  if (std::all_of(columns.begin(), std::unique(columns.begin(), end),
                  [](std::string_view column) { return AddColumn(key, column); }))
    update();
}

absl::Status RocksRowStore::Check(std::string_view row, const Condition& condition) {
  ReadOptions options;
  options.columns.emplace().emplace_back(condition.column);
  const auto page = Get(row, options, std::nullopt);
  if (!page.ok()) return page.status();
  if (page->items.empty()) return CheckCondition(condition, std::nullopt);
  return CheckCondition(condition, page->items[0].cells[0].value);
}

/// Adds the cells of one put to `batch`, with the timestamp of those that have none.
absl::StatusOr<PutResult> RocksRowStore::AddPut(std::string_view row, uint64_t hash,
                                                std::span<const CellWrite> cells, Recorder& recorder,
                                                rocksdb::WriteBatch& batch) {
  static thread_local std::string key;
  PutResult result;
  key.clear();
  AppendEncoded(key, row);
  const size_t row_bytes = key.size();
  for (const CellWrite& cell : cells) {
    if (!cell.timestamp && !result.timestamp) {
      do {
        const auto assigned = engine_->timestamps().Assign(hash);
        if (!assigned.ok()) return assigned.status();
        result.timestamp = *assigned;
      } while (Collides(cells, *result.timestamp));
    }
    key.resize(row_bytes);
    AppendEncoded(key, cell.column);
    AppendTimestamp(key, cell.timestamp ? *cell.timestamp : *result.timestamp);
    const auto status = batch.Put(family_->handle, key, rocksdb::Slice(cell.value.data(), cell.value.size()));
    if (!status.ok()) return ToStatus(status, "put a row");
    if (!recorder.records()) continue;
    key.resize(key.size() - kTimestampBytes);
    if (auto recorded = recorder.Add(batch, key); !recorded.ok()) return recorded;
  }
  return result;
}

absl::StatusOr<PutResult> RocksRowStore::Put(std::string_view row, std::span<const CellWrite> cells,
                                             const WriteOptions& options) {
  const uint64_t hash = Hash(row);
  RowLocks::SharedLock shared;
  RowLocks::Lock exclusive;
  // Its lock may be held by a write that waits, and its own would keep out others.
  if (options.condition && IsPrompt()) return WouldWaitError();
  if (options.condition) {
    exclusive = engine_->locks().Exclude(hash);
    if (auto status = family_->gate.CheckWrite(); !status.ok()) return status;
    if (auto status = Check(row, *options.condition); !status.ok()) return status;
  } else {
    shared = ShareStripe(engine_->locks(), RowLocks::StripeOf(hash));
    if (!shared) return WouldWaitError();
  }
  if (auto status = family_->gate.CheckWrite(); !status.ok()) return status;
  const AnswerCache::Change change(engine_->answers(), hash);
  ScratchBatch batch;
  Recorder recorder(*family_);
  auto result = AddPut(row, hash, cells, recorder, *batch);
  if (!result.ok()) return result;
  if (auto status = recorder.Write(*engine_, *batch, options.sync || family_->settings->sync); !status.ok())
    return status;
  UpdateAnswers(row, hash, change, cells, result->timestamp.value_or(0));
  return result;
}

/// Writes puts without conditions in one batch, and appends their results.
void RocksRowStore::PutGroup(std::span<const RowWrite> writes,
                             std::vector<absl::StatusOr<PutResult>>& results) {
  std::set<size_t> stripes;
  for (const RowWrite& write : writes) stripes.insert(RowLocks::StripeOf(Hash(write.row)));
  std::vector<RowLocks::SharedLock> locks;
  locks.reserve(stripes.size());
  for (const size_t stripe : stripes) {
    locks.push_back(ShareStripe(engine_->locks(), stripe));
    if (locks.back()) continue;
    results.insert(results.end(), writes.size(), WouldWaitError());
    return;
  }
  std::vector<AnswerCache::Change> changes;
  changes.reserve(writes.size());
  for (const RowWrite& write : writes) changes.emplace_back(engine_->answers(), Hash(write.row));
  ScratchBatch batch;
  Recorder recorder(*family_);
  const size_t first = results.size();
  bool sync = family_->settings->sync;
  absl::Status status = family_->gate.CheckWrite();
  for (const RowWrite& write : writes) {
    if (!status.ok()) {
      results.emplace_back(status);
      continue;
    }
    sync = sync || write.options.sync;
    results.push_back(AddPut(write.row, Hash(write.row), write.cells, recorder, *batch));
    status = results.back().status();
  }
  if (status.ok()) status = recorder.Write(*engine_, *batch, sync);
  if (status.ok()) {
    for (size_t i = 0; i < writes.size(); ++i) {
      UpdateAnswers(writes[i].row, Hash(writes[i].row), changes[i], writes[i].cells,
                    results[first + i]->timestamp.value_or(0));
    }
    return;
  }
  for (size_t i = first; i < results.size(); ++i) results[i] = status;
}

std::vector<absl::StatusOr<PutResult>> RocksRowStore::PutMany(std::span<const RowWrite> writes) {
  std::vector<absl::StatusOr<PutResult>> results;
  results.reserve(writes.size());
  size_t begin = 0;
  while (begin < writes.size()) {
    if (auto status = CheckCall(); !status.ok()) {
      results.resize(writes.size(), status);
      break;
    }
    if (begin > 0 && (IsMigrating(results.back().status()) || IsWouldWait(results.back().status()))) {
      // Refused writes are repeated, so none that comes after a refused one may be carried out now: it could
      // be of the same row.
      results.resize(writes.size(), results.back().status());
      break;
    }
    if (writes[begin].options.condition) {
      const RowWrite& write = writes[begin++];
      results.push_back(Put(write.row, write.cells, write.options));
      continue;
    }
    size_t end = begin;
    size_t bytes = 0;
    for (; end < writes.size() && end - begin < kMaxGroupRows && bytes < kMaxGroupBytes; ++end) {
      if (writes[end].options.condition) break;
      for (const CellWrite& cell : writes[end].cells) bytes += cell.value.size();
    }
    PutGroup(writes.subspan(begin, end - begin), results);
    begin = end;
  }
  return results;
}

absl::Status RocksRowStore::Delete(std::string_view row, const DeleteOptions& options) {
  rocksdb::WriteBatch batch;
  std::string prefix;
  AppendEncoded(prefix, row);
  const uint64_t hash = Hash(row);
  auto lock = engine_->locks().Exclude(hash);
  if (auto status = family_->gate.CheckWrite(); !status.ok()) return status;
  std::optional<AnswerCache::Change> change;
  change.emplace(engine_->answers(), hash);
  uint32_t ranges = 0;
  Recorder recorder(*family_);
  absl::Status added;
  if (options.cells) {
    added = AddCellDeletes(*family_, prefix, *options.cells, recorder, batch);
  } else if (options.columns) {
    added = AddColumnDeletes(*family_, prefix, *options.columns, recorder, batch, ranges);
  } else {
    added = AddRowDelete(*family_, prefix, recorder, batch, ranges);
  }
  if (!added.ok()) return added;
  if (batch.Count() == 0) return absl::OkStatus();
  if (auto status = recorder.Write(*engine_, batch, family_->settings->sync); !status.ok()) return status;
  change.reset();
  lock.unlock();
  FlushRanges(*family_, ranges);
  return absl::OkStatus();
}

std::vector<absl::Status> RocksRowStore::DeleteMany(std::span<const RowDelete> deletes) {
  return RowStore::DeleteMany(deletes);
}

}  // namespace kvstore::rocks
