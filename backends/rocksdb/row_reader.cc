#include "backends/rocksdb/row_reader.h"

#include <algorithm>

#include "backends/rocksdb/cell_key.h"
#include "backends/rocksdb/status.h"

namespace kvstore::rocks {
namespace {

/// Cells to step over before a seek is tried: a seek costs as much as about this many steps.
constexpr int kStepsBeforeSeek = 16;

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
  row_.assign(row);
  query_ = &query;
  items_ = &items;
  columns_ = cells_ = bytes_ = 0;
  next_.reset();
  const absl::Status status = query.columns != nullptr ? ReadNamedColumns(after) : ReadColumns(after, positioned);
  if (!status.ok()) return status;
  if (!it_.status().ok()) return ToStatus(it_.status(), "read a row");
  items.resize(columns_);
  return std::move(next_);
}

absl::Status RowReader::ReadColumns(const RowPosition* after, bool positioned) {
  if (after != nullptr) {
    column_.clear();
    AppendEncoded(column_, after->column);
    SeekInRow(after->cells > 0 ? column_ : EndOf(column_));
    if (after->cells > 0 && InRow() && InColumn()) {
      if (auto status = ReadColumn(after); !status.ok()) return status;
    }
  } else if (!positioned) {
    it_.Seek(row_);
  }
  while (!next_ && InRow()) {
    if (auto status = EnterColumn(); !status.ok()) return status;
    if (auto status = ReadColumn(nullptr); !status.ok()) return status;
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
    column_.clear();
    AppendEncoded(column_, column);
    SeekInRow(column_);
    if (!InRow()) {
      if (!it_.status().ok()) break;
      continue;  // in prefix mode an iterator may stop short of columns that follow a missing one
    }
    if (!InColumn()) continue;
    if (auto status = ReadColumn(resume); !status.ok()) return status;
    if (next_) break;
  }
  return absl::OkStatus();
}

/// Takes the column of the current key as the current column.
absl::Status RowReader::EnterColumn() {
  std::string_view rest = it_.key().ToStringView().substr(row_.size());
  if (rest.size() < kTimestampBytes + 2) return Malformed();
  rest.remove_suffix(kTimestampBytes);
  if (rest[rest.size() - 2] != '\0' || rest.back() != '\1') return Malformed();
  column_.assign(rest);
  return absl::OkStatus();
}

absl::Status RowReader::ReadColumn(const RowPosition* resume) {
  const uint32_t already = resume != nullptr ? resume->cells : 0;
  const uint64_t end = resume != nullptr ? std::min(query_->end, resume->timestamp) : query_->end;
  if (query_->max_versions == 0 && end <= TimestampOf(it_.key().ToStringView())) {
    // All cells are visible, so the newer ones need not be counted.
    if (end == 0) return absl::OkStatus();
    std::string suffix = column_;
    AppendTimestamp(suffix, end - 1);
    SeekInRow(suffix);
    if (!InRow() || !InColumn()) return absl::OkStatus();
  }
  uint32_t visible = 0;
  uint32_t returned = already;
  open_ = false;
  do {
    const uint64_t timestamp = TimestampOf(it_.key().ToStringView());
    if (timestamp < query_->start || (query_->max_versions != 0 && visible == query_->max_versions) ||
        returned >= query_->versions) {
      SkipColumn();
      break;
    }
    ++visible;
    if (timestamp < end) {
      if (!Emit(timestamp, returned)) break;
      ++returned;
    }
    it_.Next();
  } while (InRow() && InColumn());
  Close();
  return absl::OkStatus();
}

bool RowReader::Emit(uint64_t timestamp, uint32_t already) {
  const rocksdb::Slice value = it_.value();
  size_t bytes = value.size();
  if (!open_) {
    if (columns_ == query_->limit) {
      next_ = RowPosition{.column = items_->at(columns_ - 1).column};
      return false;
    }
    bytes += column_.size() - 2;
  }
  if (columns_ > 0 && bytes_ + bytes > query_->max_bytes) {
    const Item& last = items_->at(columns_ - 1);
    next_ = RowPosition{.column = last.column};
    if (open_) {
      next_->cells = already;
      next_->timestamp = last.cells[cells_ - 1].timestamp;
    }
    return false;
  }
  bytes_ += bytes;
  if (!open_) {
    if (columns_ == items_->size()) items_->emplace_back();
    // The form was checked on entering the column, or is ours.
    if (!Decode(column_, (*items_)[columns_].column)) (*items_)[columns_].column.clear();
    ++columns_;
    cells_ = 0;
    open_ = true;
  }
  std::vector<Cell>& cells = (*items_)[columns_ - 1].cells;
  if (cells_ == cells.size()) cells.emplace_back();
  Cell& cell = cells[cells_++];
  cell.timestamp = timestamp;
  cell.value.assign(value.data(), value.size());
  return true;
}

void RowReader::Close() {
  if (open_) (*items_)[columns_ - 1].cells.resize(cells_);
  open_ = false;
}

bool RowReader::InRow() const {
  if (!it_.Valid()) return false;
  const rocksdb::Slice key = it_.key();
  return key.size() > row_.size() + kTimestampBytes && key.starts_with(row_);
}

bool RowReader::InColumn() const {
  const rocksdb::Slice key = it_.key();
  return key.size() == row_.size() + column_.size() + kTimestampBytes &&
         std::string_view(key.data() + row_.size(), column_.size()) == column_;
}

void RowReader::SkipColumn() {
  for (int step = 0; step < kStepsBeforeSeek; ++step) {
    it_.Next();
    if (!InRow() || !InColumn()) return;
  }
  SeekInRow(EndOf(column_));
}

void RowReader::SeekInRow(std::string_view suffix) {
  seek_.assign(row_);
  seek_.append(suffix);
  it_.Seek(seek_);
}

}  // namespace kvstore::rocks
