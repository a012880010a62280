#include "backends/rocksdb/row_reader.h"

#include <algorithm>
#include <cstring>

#include "backends/rocksdb/cell_key.h"
#include "backends/rocksdb/status.h"

namespace kvstore::rocks {
namespace {

// Room that is made at once, where growing step by step would move what is there.
constexpr size_t kLikelyColumns = 16;
constexpr size_t kLikelyVersions = 64;

absl::Status Malformed() { return absl::DataLossError("a stored key is not the key of a cell"); }

}  // namespace

void RowQuery::Set(const TimeRange& range, const FamilySettings& settings, uint64_t now) {
  max_versions = settings.max_versions.load(std::memory_order_relaxed);
  start = std::max(range.start, settings.OldestVisible(now));
  end = range.end;
}

std::vector<std::string> SortedColumns(std::vector<std::string> columns) {
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  return columns;
}

absl::StatusOr<std::optional<RowPosition>> RowReader::Read(std::string_view row, const RowQuery& query,
                                                           const RowPosition* after, bool positioned,
                                                           std::vector<Item>& items) {
  column_key_.assign(row);
  row_bytes_ = row.size();
  query_ = &query;
  items_ = &items;
  columns_ = cells_ = bytes_ = 0;
  next_.reset();
  if (positioned) Look();
  const absl::Status status = query.columns != nullptr ? ReadNamedColumns(after) : ReadColumns(after, positioned);
  if (!status.ok()) return status;
  // An iterator that stopped early says why here; one that is valid has not failed.
  if (!valid_) {
    if (auto failed = it_.status(); !failed.ok()) return ToStatus(failed, "read a row");
  }
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
      if (InColumn()) {
        if (auto status = ReadColumn(after); !status.ok()) return status;
        if (!next_) LeaveColumn();
      }
    }
  } else if (!positioned) {
    Seek(column_key_);
  }
  while (!next_ && InRow()) {
    if (auto status = EnterColumn(); !status.ok()) return status;
    if (auto status = ReadColumn(nullptr); !status.ok()) return status;
    if (!next_) LeaveColumn();
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
    if (!valid_) break;  // nothing from here on in the row
    if (!InColumn()) continue;
    if (auto status = ReadColumn(resume); !status.ok()) return status;
    if (next_) break;
  }
  return absl::OkStatus();
}

void RowReader::SetColumn(std::string_view column) {
  column_key_.resize(row_bytes_);
  AppendEncoded(column_key_, column);
}

/// Takes the column of the current key as the current column.
absl::Status RowReader::EnterColumn() {
  const size_t bytes = key_.size() - kTimestampBytes;
  if (bytes < row_bytes_ + 2 || key_[bytes - 2] != '\0' || key_[bytes - 1] != '\1') return Malformed();
  column_key_.assign(key_.data(), bytes);
  return absl::OkStatus();
}

absl::Status RowReader::ReadColumn(const RowPosition* resume) {
  const uint64_t end = resume != nullptr ? std::min(query_->end, resume->timestamp) : query_->end;
  if (query_->max_versions == 0 && end <= TimestampOf(key_)) {
    // All cells are visible, so the newer ones need not be counted.
    if (end == 0) return absl::OkStatus();
    std::string newest = column_key_;
    AppendTimestamp(newest, end - 1);
    Seek(newest);
    if (!InColumn()) return absl::OkStatus();
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
    if (!InColumn()) break;
  }
  if (open_) (*items_)[columns_ - 1].cells.resize(cells_);
  return malformed_ ? Malformed() : absl::OkStatus();
}

bool RowReader::Emit(uint64_t timestamp, uint32_t already) {
  const rocksdb::Slice value = it_.value();
  const size_t bytes = value.size() + (open_ ? 0 : column().size() - 2);
  if (!open_ && columns_ == query_->limit) {
    next_ = RowPosition{.column = (*items_)[columns_ - 1].column};
    return false;
  }
  if (columns_ > 0 && bytes_ + bytes > query_->max_bytes) {
    const Item& last = (*items_)[columns_ - 1];
    next_ = RowPosition{.column = last.column};
    if (open_) {
      next_->cells = already;
      next_->timestamp = last.cells[cells_ - 1].timestamp;
    }
    return false;
  }
  bytes_ += bytes;
  if (!open_) {
    if (columns_ == items_->size()) {
      if (columns_ == 0) items_->reserve(std::min<size_t>(query_->limit, kLikelyColumns));
      items_->emplace_back();
    }
    if (!Decode(column(), (*items_)[columns_].column)) {
      malformed_ = true;
      return false;
    }
    ++columns_;
    cells_ = 0;
    open_ = true;
  }
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

bool RowReader::InRow() const {
  return valid_ && key_.size() > row_bytes_ + kTimestampBytes &&
         std::memcmp(key_.data(), column_key_.data(), row_bytes_) == 0;
}

bool RowReader::InColumn() const {
  return valid_ && key_.size() == column_key_.size() + kTimestampBytes &&
         std::memcmp(key_.data(), column_key_.data(), column_key_.size()) == 0;
}

void RowReader::Seek(const std::string& key) {
  it_.Seek(key);
  Look();
}

void RowReader::Next() {
  it_.Next();
  Look();
}

void RowReader::Look() {
  valid_ = it_.Valid();
  if (valid_) key_ = it_.key().ToStringView();
}

/// Goes behind the current column, if the iterator is not there yet.
void RowReader::LeaveColumn() {
  for (int step = 0; InColumn(); ++step) {
    if (step == steps_before_seek_) {
      // The next column is probably as long.
      steps_before_seek_ = kFewSteps;
      Seek(EndOf(column_key_));
      return;
    }
    Next();
  }
  steps_before_seek_ = kStepsBeforeSeek;
}

}  // namespace kvstore::rocks
