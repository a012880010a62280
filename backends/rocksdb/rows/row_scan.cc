#include "backends/rocksdb/rows/row_scan.h"

#include <rocksdb/perf_level.h>

#include <limits>
#include <utility>

#include "backend_api/row_rules.h"
#include "backend_api/scan_budget.h"
#include "backends/rocksdb/engine/deleted.h"
#include "backends/rocksdb/engine/file_system.h"
#include "backends/rocksdb/engine/status.h"
#include "backends/rocksdb/rows/cell_key.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::rocks {
namespace {

/// After so many cells of a row without anything to return, the scan checks whether it has to pause.
constexpr uint64_t kMaxRowExamined = 65'536;

std::string Encoded(std::string_view row) {
  std::string key;
  AppendEncoded(key, row);
  return key;
}

/// RocksDB counts each step of an iterator in its thread's perf context, which took some 5 % of a scan and
/// which nobody reads here. A thread that has asked RocksDB for more than its default level still gets it.
class WithoutPerfCounters {
 public:
  WithoutPerfCounters() : before_(rocksdb::GetPerfLevel()) {
    if (before_ == rocksdb::PerfLevel::kEnableCount) rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
  }
  ~WithoutPerfCounters() { rocksdb::SetPerfLevel(before_); }
  WithoutPerfCounters(const WithoutPerfCounters&) = delete;
  WithoutPerfCounters& operator=(const WithoutPerfCounters&) = delete;

 private:
  const rocksdb::PerfLevel before_;
};

}  // namespace

RocksRowScan::RocksRowScan(std::shared_ptr<Engine> engine, std::shared_ptr<Family> family,
                           const RowRange& range, const ScanOptions& options,
                           const std::optional<ScanPosition>& after)
    : engine_(std::move(engine)),
      family_(std::move(family)),
      columns_(SortedColumns(options.columns.value_or(std::vector<std::string>()))),
      start_(range.start),
      upper_bound_(range.end.empty() ? "" : Encoded(range.end)),
      upper_bound_slice_(upper_bound_) {
  query_.columns = options.columns ? &columns_ : nullptr;
  query_.versions = options.versions;
  query_.limit = std::numeric_limits<uint32_t>::max();
  query_.max_bytes = options.max_bytes;
  query_.max_examined = kMaxRowExamined;
  // A row that is returned in pieces says that more follows, so its page must not end early for want of
  // cells.
  query_.ends_short = false;
  // Visibility is decided once, because the iterator also shows the state of this moment.
  query_.SetVisibility(options.time_range, *family_->settings);
  rocksdb::ReadOptions read;
  read.total_order_seek = true;
  // A scan reads blocks that others will not need soon, so it must not push theirs out of the cache.
  read.fill_cache = false;
  read.max_skippable_internal_keys = kMaxDeletedInARow;
  if (!upper_bound_.empty()) read.iterate_upper_bound = &upper_bound_slice_;
  it_.reset(engine_->db().NewIterator(read, family_->handle));
  reader_ = std::make_unique<RowReader>(*it_);
  if (after) {
    key_ = after->row;
    row_ = Encoded(key_);
    inside_ = after->inside;
    started_ = true;
    it_->Seek(inside_ ? row_ : EndOf(row_));
  } else if (range.start.empty()) {
    it_->SeekToFirst();
  } else {
    it_->Seek(Encoded(range.start));
  }
}

/// Takes the row at the iterator as the current one; false at the end of the range.
absl::StatusOr<bool> RocksRowScan::FindRow(std::string& key) {
  while (!it_->Valid()) {
    const auto at = StoppedAt(*it_);
    if (!at) {
      if (!it_->status().ok()) return ToStatus(it_->status(), "scan rows");
      return false;
    }
    SpendScanBudget(kMaxDeletedInARow);
    it_->Seek(*at);
    if (it_->Valid()) break;
    absl::Status status = CheckCall();
    if (status.ok() && IsScanBudgetSpent()) status = PausedError();
    if (status.ok()) continue;
    if (const auto stopped = StoppedAt(*it_)) ResumeAt(*stopped);
    return status;
  }
  const std::string_view stored = it_->key().ToStringView();
  const auto size = EncodedSize(stored);
  if (!size || !Decode(stored.substr(0, *size), key)) {
    return absl::DataLossError("a stored key is not the key of a cell");
  }
  row_.assign(stored.substr(0, *size));
  return true;
}

absl::StatusOr<bool> RocksRowScan::Next(ScannedRow& row) {
  const WithoutPerfCounters without_perf_counters;
  const ReadAheadScope read_ahead;
  while (true) {
    const bool resumed = inside_.has_value();
    if (!resumed) {
      if (std::exchange(reread_row_, false)) it_->Seek(row_);
      auto found = FindRow(row.key);
      if (!found.ok() || !*found) return found;
    } else {
      row.key = key_;
    }
    auto next =
        reader_->Read(row_, query_, resumed ? &*inside_ : nullptr, /*positioned=*/!resumed, row.items);
    if (!next.ok()) {
      if (!resumed) {
        reread_row_ = true;
        ResumeBefore(row.key);
      }
      return next.status();
    }
    inside_ = *std::move(next);
    row.continues = inside_.has_value();
    if (!inside_) SkipRow();
    const bool spent = IsScanBudgetSpent();
    if (row.items.empty() && !inside_ && !spent) continue;
    key_ = row.key;
    started_ = true;
    if (!row.items.empty()) return true;
    if (spent) return PausedError();
  }
}

/// Sets the scan's position right before this row, in which nothing was found yet, so that a scan that is
/// resumed there need not pass everything before it again.
void RocksRowScan::ResumeBefore(const std::string& row) {
  if (row.empty()) return;
  std::string before = NameBefore(row);
  // Before the first name of all there is none, which a marker could not name.
  if (before.empty() || before < start_ || (started_ && before <= key_)) return;
  key_ = std::move(before);
  started_ = true;
}

/// Makes the scan, and its position, go on at this deleted cell, after all columns before the cell's.
void RocksRowScan::ResumeAt(const std::string& stored) {
  const auto key = ParseCellKey(stored);
  std::string row;
  std::string column;
  if (!key || !Decode(key->row, row) || row.empty() || !Decode(key->column, column)) return;
  if (column.empty()) return ResumeBefore(row);
  row_ = Encoded(row);
  key_ = std::move(row);
  inside_ = RowPosition{.column = NameBefore(std::move(column))};
  started_ = true;
}

/// Moves to the next row, if the reader has not got there already.
void RocksRowScan::SkipRow() {
  if (query_.columns == nullptr) return;
  for (int step = 0; step < 16; ++step) {
    if (!it_->Valid() || !it_->key().starts_with(row_)) break;
    it_->Next();
  }
  // A reader of named columns may have reached the end of its range in the middle of the row, so seek to be
  // sure.
  if (!it_->Valid() || it_->key().starts_with(row_)) it_->Seek(EndOf(row_));
}

std::optional<ScanPosition> RocksRowScan::position() const {
  if (!started_) return std::nullopt;
  return ScanPosition{key_, inside_};
}

}  // namespace kvstore::rocks
