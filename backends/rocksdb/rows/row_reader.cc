#include "backends/rocksdb/rows/row_reader.h"

#include <algorithm>
#include <cstring>

#include "backend_api/scan_budget.h"
#include "backends/rocksdb/engine/deleted.h"
#include "backends/rocksdb/engine/status.h"
#include "backends/rocksdb/rows/cell_key.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/limits.h"

namespace kvstore::rocks {
namespace {

// Space reserved at once, where growing step by step would move what is there.
constexpr size_t kLikelyColumns = 16;
constexpr size_t kLikelyVersions = 64;

template <typename Word>
bool SameWord(const char* a, const char* b) {
  Word x;
  Word y;
  std::memcpy(&x, a, sizeof(Word));
  std::memcpy(&y, b, sizeof(Word));
  return x == y;
}

/// memcmp(a, b, n) == 0 for keys, most of which are so short that the call costs more than the work. So does
/// what follows.
[[gnu::always_inline]] inline bool SameBytes(const char* a, const char* b, size_t n) {
  if (n >= 8) {
    for (size_t i = 0; i + 8 < n; i += 8) {
      if (!SameWord<uint64_t>(a + i, b + i)) return false;
    }
    return SameWord<uint64_t>(a + n - 8, b + n - 8);
  }
  if (n >= 4) return SameWord<uint32_t>(a, b) && SameWord<uint32_t>(a + n - 4, b + n - 4);
  return n == 0 || (a[0] == b[0] && a[n / 2] == b[n / 2] && a[n - 1] == b[n - 1]);
}

/// std::memcpy.
[[gnu::always_inline]] inline void CopyBytes(char* to, const char* from, size_t n) {
  if (n > 16 || n < 4) {
    std::memcpy(to, from, n);
  } else if (n >= 8) {
    // Both ends are read before either is written, and may overlap.
    uint64_t begin;
    uint64_t end;
    std::memcpy(&begin, from, 8);
    std::memcpy(&end, from + n - 8, 8);
    std::memcpy(to, &begin, 8);
    std::memcpy(to + n - 8, &end, 8);
  } else {
    uint32_t begin;
    uint32_t end;
    std::memcpy(&begin, from, 4);
    std::memcpy(&end, from + n - 4, 4);
    std::memcpy(to, &begin, 4);
    std::memcpy(to + n - 4, &end, 4);
  }
}

/// Whether there is a zero among the bytes.
[[gnu::always_inline]] inline bool HasZero(const char* bytes, size_t n) {
  if (n > 8) return std::memchr(bytes, 0, n) != nullptr;
  for (size_t i = 0; i < n; ++i) {
    if (bytes[i] == '\0') return true;
  }
  return false;
}

/// Whether `encoded`, which has its end mark, is certainly enc(name). The rows of a scan mostly have the same
/// columns, so a name left by the row before need not be decoded again.
bool IsEncoded(std::string_view name, std::string_view encoded) {
  return name.size() + 2 == encoded.size() && SameBytes(name.data(), encoded.data(), name.size()) &&
         !HasZero(name.data(), name.size());
}

absl::Status Malformed() { return absl::DataLossError("a stored key is not the key of a cell"); }

}  // namespace

std::string NameBefore(std::string name) {
  static_assert(kMaxColumnNameBytes == kMaxRowKeyBytes);
  if (name.back() == '\0') {
    name.pop_back();
  } else {
    --name.back();
    name.resize(kMaxColumnNameBytes, '\xff');
  }
  return name;
}

void RowQuery::SetVisibility(const TimeRange& range, const FamilySettings& settings) {
  max_versions = settings.max_versions.load(std::memory_order_relaxed);
  start = std::max(range.start, settings.OldestVisible());
  end = range.end;
}

absl::StatusOr<std::optional<RowPosition>> RowReader::Read(std::string_view row, const RowQuery& query,
                                                           const RowPosition* after, bool positioned,
                                                           std::vector<Item>& items) {
  column_key_.assign(row);
  row_bytes_ = row.size();
  query_ = &query;
  items_ = &items;
  after_ = after;
  columns_ = cells_ = page_cells_ = bytes_ = 0;
  examined_ = 0;
  met_deleted_ = false;
  failed_ = absl::OkStatus();
  next_.reset();
  if (positioned) UpdatePosition();
  absl::Status status = query.columns != nullptr ? ReadNamedColumns(after) : ReadColumns(after, positioned);
  if (!status.ok()) return status;
  if (!failed_.ok()) return failed_;
  items.resize(columns_);
  return std::move(next_);
}

absl::Status RowReader::ReadColumns(const RowPosition* after, bool positioned) {
  if (after != nullptr) {
    SetColumn(after->column);
    if (after->cells == 0) {
      Seek(EndOf(column_key_));
    } else {
      Seek(column_key_);
      if (in_column_) {
        if (auto status = ReadColumn(after); !status.ok()) return status;
        if (!next_) LeaveColumn();
      }
    }
  } else if (!positioned) {
    Seek(column_key_);
  }
  while (!next_ && in_row_) {
    if (auto status = AdoptColumn(); !status.ok()) return status;
    if (auto status = ReadColumn(nullptr); !status.ok()) return status;
    if (!next_) LeaveColumn();
    if (examined_ >= query_->max_examined && !next_ && in_row_ && MayEnd()) {
      std::string left;
      if (!Decode(std::string_view(column_key_).substr(row_bytes_), left)) return Malformed();
      next_ = RowPosition{.column = std::move(left)};
    }
  }
  return absl::OkStatus();
}

absl::Status RowReader::ReadNamedColumns(const RowPosition* after) {
  for (const std::string& column : *query_->columns) {
    const RowPosition* resume = nullptr;
    if (after != nullptr) {
      if (column < after->column || (column == after->column && after->cells == 0)) continue;
      if (column == after->column) resume = after;
    }
    SetColumn(column);
    Seek(column_key_);
    if (!valid_ && !stopped_) break;  // nothing from here on in the row
    if (in_column_) {
      if (auto status = ReadColumn(resume); !status.ok()) return status;
    }
    if (!next_ && MayEnd() && &column != &query_->columns->back()) next_ = RowPosition{.column = column};
    if (next_) break;
  }
  return absl::OkStatus();
}

void RowReader::SetColumn(std::string_view column) {
  column_key_.resize(row_bytes_);
  AppendEncoded(column_key_, column);
}

/// Makes the column of the current key the current column.
absl::Status RowReader::AdoptColumn() {
  const size_t bytes = key_.size() - kTimestampBytes;
  if (bytes < row_bytes_ + 2 || key_[bytes - 2] != '\0' || key_[bytes - 1] != '\1') return Malformed();
  if (column_key_.size() != bytes) column_key_.resize(bytes);
  CopyBytes(column_key_.data() + row_bytes_, key_.data() + row_bytes_, bytes - row_bytes_);
  in_column_ = true;
  return absl::OkStatus();
}

absl::Status RowReader::ReadColumn(const RowPosition* resume) {
  const uint64_t end = resume != nullptr ? std::min(query_->end, resume->timestamp) : query_->end;
  if (query_->max_versions == 0 && end <= TimestampOf(key_)) {
    // All versions are visible, so the newer cells need not be counted.
    if (end == 0) return absl::OkStatus();
    std::string newest = column_key_;
    AppendTimestamp(newest, end - 1);
    Seek(newest);
    if (!in_column_) return absl::OkStatus();
  }
  const uint64_t visible_limit = query_->max_versions != 0 ? query_->max_versions : UINT64_MAX;
  uint64_t visible = 0;
  uint32_t returned = resume != nullptr ? resume->cells : 0;
  open_ = false;
  while (returned < query_->versions) {
    const uint64_t timestamp = TimestampOf(key_);
    if (timestamp < query_->start) break;
    if (timestamp < end) {
      if (!Emit(timestamp, returned)) break;
      ++returned;
    }
    if (++visible == visible_limit || returned == query_->versions) break;
    Next();
    if (!in_column_) break;
  }
  if (open_ && (*items_)[columns_ - 1].cells.size() != cells_) (*items_)[columns_ - 1].cells.resize(cells_);
  return malformed_ ? Malformed() : absl::OkStatus();
}

/// Adds the current cell to the page.
bool RowReader::Emit(uint64_t timestamp, uint32_t already) {
  const rocksdb::Slice value = it_.value();
  if (!open_) {
    if (!OpenItem(value.size())) return false;
  } else if (bytes_ + value.size() > query_->max_bytes || page_cells_ == kMaxPageCells) {
    const Item& last = (*items_)[columns_ - 1];
    next_ =
        RowPosition{.column = last.column, .cells = already, .timestamp = last.cells[cells_ - 1].timestamp};
    return false;
  }
  bytes_ += value.size();
  ++page_cells_;
  std::vector<Cell>& cells = (*items_)[columns_ - 1].cells;
  if (cells_ == cells.size()) {
    // One cell is the common case; a second one announces more.
    if (cells_ == 1) cells.reserve(std::min<size_t>(query_->versions, kLikelyVersions));
    cells.emplace_back();
  }
  Cell& cell = cells[cells_++];
  cell.timestamp = timestamp;
  cell.value.assign(value.data(), value.size());
  return true;
}

/// Begins the item of the current column, whose first value has `value_bytes`.
bool RowReader::OpenItem(size_t value_bytes) {
  const std::string_view encoded = std::string_view(column_key_).substr(row_bytes_);
  if (columns_ > 0 &&
      (columns_ == query_->limit || bytes_ + encoded.size() - 2 + value_bytes > query_->max_bytes ||
       page_cells_ == kMaxPageCells)) {
    next_ = RowPosition{.column = (*items_)[columns_ - 1].column};
    return false;
  }
  if (columns_ == items_->size()) {
    if (columns_ == 0) items_->reserve(std::min<size_t>(query_->limit, kLikelyColumns));
    items_->emplace_back();
  }
  std::string& name = (*items_)[columns_].column;
  if (!IsEncoded(name, encoded) && !Decode(encoded, name)) {
    malformed_ = true;
    return false;
  }
  bytes_ += encoded.size() - 2;
  ++columns_;
  cells_ = 0;
  open_ = true;
  return true;
}

void RowReader::Seek(const std::string& key) {
  it_.Seek(key);
  UpdatePosition();
}

void RowReader::Next() {
  it_.Next();
  UpdatePosition();
}

/// Records where the iterator stands.
void RowReader::UpdatePosition() {
  in_row_ = in_column_ = false;
  valid_ = it_.Valid();
  if (!valid_ && !PassDeleted()) return;
  if (--moves_left_ == 0 && !CheckLimits()) return;
  key_ = it_.key().ToStringView();
  in_row_ =
      key_.size() > row_bytes_ + kTimestampBytes && SameBytes(key_.data(), column_key_.data(), row_bytes_);
  if (!in_row_ || key_.size() != column_key_.size() + kTimestampBytes) return;
  in_column_ =
      SameBytes(key_.data() + row_bytes_, column_key_.data() + row_bytes_, column_key_.size() - row_bytes_);
}

/// For an iterator that is not valid: moves on if it has only stopped among deleted cells of the row. Returns
/// whether it is valid then.
bool RowReader::PassDeleted() {
  stopped_ = false;
  for (;;) {
    if (const auto status = it_.status(); !status.IsIncomplete()) {
      // An iterator that failed says why here.
      if (!status.ok()) failed_ = ToStatus(status, "read a row");
      return false;
    }
    const auto at = StoppedAt(it_);
    if (!at) return false;
    examined_ += kMaxDeletedInARow;
    SpendScanBudget(kMaxDeletedInARow);
    const bool in_row =
        at->size() > row_bytes_ + kTimestampBytes && SameBytes(at->data(), column_key_.data(), row_bytes_);
    if (!in_row) return false;
    if (EndBefore(*at)) return false;
    if (failed_ = CheckCall(); !failed_.ok()) return false;
    if (leaving_ && at->size() == column_key_.size() + kTimestampBytes && at->starts_with(column_key_)) {
      met_deleted_ = true;
      it_.Seek(EndOf(column_key_));
    } else {
      it_.Seek(*at);
    }
    if (it_.Valid()) return valid_ = true;
  }
}

/// Returns whether the read of the current column, or of the page, ends at this deleted key of the row.
bool RowReader::EndBefore(std::string_view key) {
  const std::string_view stored = key.substr(row_bytes_, key.size() - row_bytes_ - kTimestampBytes);
  const std::string_view current = std::string_view(column_key_).substr(row_bytes_);
  if (query_->columns != nullptr) return stopped_ = stored > current;
  std::string column;
  if (!MayEnd() || stored == current || !Decode(stored, column) || column.empty()) return false;
  column = NameBefore(std::move(column));
  // The page must not end where it began, or the next one would be the same.
  if (after_ != nullptr && after_->column >= column) return false;
  next_ = RowPosition{.column = std::move(column)};
  return true;
}

/// Checks the call's deadline; returns false if the call is over.
bool RowReader::CheckLimits() {
  moves_left_ = kMovesBetweenChecks;
  examined_ += kMovesBetweenChecks;
  SpendScanBudget(kMovesBetweenChecks);
  failed_ = CheckCall();
  if (!failed_.ok()) valid_ = stopped_ = false;
  return failed_.ok();
}

/// Moves past the current column, if the iterator is not there yet.
void RowReader::LeaveColumn() {
  // A step may pass any number of deleted versions. Where there were many, the next columns of the row
  // probably have as many.
  const int most = met_deleted_ ? 0 : steps_before_seek_;
  leaving_ = true;
  steps_before_seek_ = kStepsBeforeSeek;
  for (int step = 0; in_column_; ++step) {
    if (step == most) {
      // The next column is probably as long, so it gets fewer steps.
      steps_before_seek_ = kFewSteps;
      Seek(EndOf(column_key_));
      break;
    }
    Next();
  }
  leaving_ = false;
}

}  // namespace kvstore::rocks
