#include "tests/reports/memory_store.h"

#include <algorithm>

namespace kvstore::testing {

/// Walks a copy of the rows.
class MemoryStore::Cursor : public RowCursor {
 public:
  explicit Cursor(std::vector<ScannedRow> pieces) : pieces_(std::move(pieces)) {}
  absl::StatusOr<bool> Next(ScannedRow& row) override {
    if (at_ == pieces_.size()) return false;
    row = pieces_[at_++];
    return true;
  }
  /// A letter and the last row, after all of whose pieces the scan goes on.
  std::string marker() const override { return at_ == 0 ? "" : "m" + pieces_[at_ - 1].key; }

 private:
  std::vector<ScannedRow> pieces_;
  size_t at_ = 0;
};

MemoryStore::Counts MemoryStore::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

void MemoryStore::ResetCounts() {
  const MutexLock lock(mutex_);
  counts_ = {};
}

void MemoryStore::AdvanceClock(uint64_t ms) {
  const MutexLock lock(mutex_);
  clock_ += ms;
}

absl::StatusOr<MemoryStore::Rows*> MemoryStore::Find(std::string_view dataset) {
  const auto found = datasets_.find(dataset);
  if (found == datasets_.end()) return absl::NotFoundError("no such dataset");
  return &found->second;
}

absl::Status MemoryStore::CreateDataset(const DatasetSpec& spec) {
  const MutexLock lock(mutex_);
  if (!datasets_.try_emplace(spec.name).second) return absl::AlreadyExistsError("there is one");
  return absl::OkStatus();
}

absl::Status MemoryStore::DropDataset(std::string_view dataset, const DropOptions&) {
  const MutexLock lock(mutex_);
  const auto found = datasets_.find(dataset);
  if (found != datasets_.end()) datasets_.erase(found);
  return absl::OkStatus();
}

absl::StatusOr<Row> MemoryStore::GetRow(std::string_view dataset, std::string_view row,
                                        const ReadOptions& options) {
  if (before_read != nullptr) {
    if (auto status = before_read(row); !status.ok()) return status;
  }
  const MutexLock lock(mutex_);
  const auto rows = Find(dataset);
  if (!rows.ok()) return rows.status();
  ++counts_.rows_read;
  Row page;
  const auto found = (*rows)->find(row);
  if (found == (*rows)->end()) return page;
  if (options.columns) counts_.columns_named += options.columns->size();
  for (const auto& [column, cell] : found->second) {
    // The marker is a letter, so that it is never empty, and the last column of the page before.
    if (!options.marker.empty() ? column <= options.marker.substr(1)
                                : options.after_column && column <= *options.after_column) {
      continue;
    }
    if (options.columns &&
        std::find(options.columns->begin(), options.columns->end(), column) == options.columns->end()) {
      continue;
    }
    if (page.items.size() == page_columns) {
      page.marker = "m" + page.items.back().column;
      return page;
    }
    counts_.bytes_read += column.size() + cell.value.size();
    page.items.push_back({column, {cell}});
  }
  return page;
}

absl::StatusOr<PutResult> MemoryStore::PutRow(std::string_view dataset, std::string_view row,
                                              std::span<const CellWrite> cells, const WriteOptions& options) {
  if (before_write != nullptr) {
    if (auto status = before_write(row); !status.ok()) return status;
  }
  const MutexLock lock(mutex_);
  const auto rows = Find(dataset);
  if (!rows.ok()) return rows.status();
  if (options.condition) {
    const auto columns = (*rows)->find(row);
    const Cell* cell = nullptr;
    if (columns != (*rows)->end()) {
      const auto found = columns->second.find(options.condition->column);
      if (found != columns->second.end()) cell = &found->second;
    }
    if (!options.condition->equals && cell != nullptr) return absl::AlreadyExistsError("the column is there");
    if (options.condition->equals && (cell == nullptr || cell->value != *options.condition->equals)) {
      return absl::FailedPreconditionError("the column has another value");
    }
  }
  const uint64_t timestamp = ++clock_;
  Columns& columns = (**rows)[std::string(row)];
  for (const CellWrite& cell : cells) {
    Cell& stored = columns[std::string(cell.column)];
    const uint64_t given = cell.timestamp.value_or(timestamp);
    if (given >= stored.timestamp) stored = {given, std::string(cell.value)};
  }
  return PutResult{timestamp};
}

absl::Status MemoryStore::DeleteRow(std::string_view dataset, std::string_view row,
                                    const DeleteOptions& options) {
  if (before_write != nullptr) {
    if (auto status = before_write(row); !status.ok()) return status;
  }
  const MutexLock lock(mutex_);
  const auto rows = Find(dataset);
  if (!rows.ok()) return rows.status();
  const auto found = (*rows)->find(row);
  if (found == (*rows)->end()) return absl::OkStatus();
  if (!options.columns) {
    (*rows)->erase(found);
    return absl::OkStatus();
  }
  for (const std::string& column : *options.columns) found->second.erase(column);
  if (found->second.empty()) (*rows)->erase(found);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<absl::StatusOr<Row>>> MemoryStore::GetRows(std::string_view dataset,
                                                                      std::span<const RowRead> reads) {
  std::vector<absl::StatusOr<Row>> rows;
  for (const RowRead& read : reads) {
    if (rows.size() >= batch_rows) {
      rows.emplace_back(absl::ResourceExhaustedError("the batch is full"));
    } else {
      rows.push_back(GetRow(dataset, read.row, read.options));
    }
  }
  return rows;
}

absl::StatusOr<std::vector<absl::StatusOr<PutResult>>> MemoryStore::PutRows(
    std::string_view dataset, std::span<const RowWrite> writes) {
  std::vector<absl::StatusOr<PutResult>> results;
  for (const RowWrite& write : writes)
    results.push_back(PutRow(dataset, write.row, write.cells, write.options));
  return results;
}

absl::StatusOr<std::unique_ptr<RowCursor>> MemoryStore::ScanRows(std::string_view dataset,
                                                                 const RowRange& range,
                                                                 const ScanOptions& options) {
  if (before_scan != nullptr) {
    if (auto status = before_scan(options); !status.ok()) return status;
  }
  const MutexLock lock(mutex_);
  const auto rows = Find(dataset);
  if (!rows.ok()) return rows.status();
  ++counts_.scans;
  std::vector<ScannedRow> pieces;
  for (auto at = (*rows)->lower_bound(range.start);
       at != (*rows)->end() && (range.end.empty() || at->first < range.end); ++at) {
    if (!options.marker.empty() && at->first <= options.marker.substr(1)) continue;
    ScannedRow piece{.key = at->first};
    for (const auto& [column, cell] : at->second) {
      if (options.columns &&
          std::find(options.columns->begin(), options.columns->end(), column) == options.columns->end()) {
        continue;
      }
      if (piece.items.size() == page_columns) {
        piece.continues = true;
        pieces.push_back(std::move(piece));
        piece = {.key = at->first};
      }
      piece.items.push_back({column, {cell}});
    }
    if (!piece.items.empty()) pieces.push_back(std::move(piece));
  }
  return std::make_unique<Cursor>(std::move(pieces));
}

}  // namespace kvstore::testing
