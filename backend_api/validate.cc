#include "backend_api/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kvstore_api/limits.h"

namespace kvstore {
namespace {

template <typename... Args>
absl::Status Invalid(fmt::format_string<Args...> format, Args&&... args) {
  return absl::InvalidArgumentError(fmt::format(format, std::forward<Args>(args)...));
}

absl::Status ValidateColumn(std::string_view column) {
  if (column.size() > kMaxColumnNameBytes) {
    return Invalid("column: a name of {} bytes, the limit is {}", column.size(), kMaxColumnNameBytes);
  }
  return absl::OkStatus();
}

absl::Status ValidateColumns(const std::optional<std::vector<std::string>>& columns) {
  if (!columns) return absl::OkStatus();
  if (columns->empty()) return Invalid("columns: an empty list; leave it out for all columns");
  if (columns->size() > kMaxPageCells) {
    return Invalid("columns: {} names, the limit is {}", columns->size(), kMaxPageCells);
  }
  for (const std::string& column : *columns) {
    if (auto status = ValidateColumn(column); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ValidateMaxBytes(size_t max_bytes) {
  if (max_bytes >= 1 && max_bytes <= kMaxPageBytes) return absl::OkStatus();
  return Invalid("max_bytes: {} is out of range 1..{}", max_bytes, kMaxPageBytes);
}

absl::Status ValidateLimit(uint32_t limit) {
  if (limit >= 1 && limit <= kMaxListEntries) return absl::OkStatus();
  return Invalid("limit: {} is out of range 1..{}", limit, kMaxListEntries);
}

absl::Status ValidateIdRange(const IdRange& range) {
  if (range.end > kMaxId + 1) return Invalid("end_id: {} is beyond the limit of {}", range.end, kMaxId + 1);
  if (range.start < range.end) return absl::OkStatus();
  return Invalid("start_id: {} is not before end_id {}; the range [start, end) is empty", range.start,
                 range.end);
}

absl::Status ValidateChoice(uint32_t versions, const TimeRange& range, size_t max_bytes) {
  if (versions == 0) return Invalid("versions: must be at least 1");
  if (range.start > kMaxTimestamp) {
    return Invalid("start_timestamp: {} is beyond the limit of {}", range.start, kMaxTimestamp);
  }
  if (range.end > kMaxTimestamp + 1) {
    return Invalid("end_timestamp: {} is beyond the limit of {}", range.end, kMaxTimestamp + 1);
  }
  if (range.start >= range.end) {
    return Invalid("start_timestamp: {} is not before end_timestamp {}; the range [start, end) is empty",
                   range.start, range.end);
  }
  return ValidateMaxBytes(max_bytes);
}

bool SameCell(const CellWrite& a, const CellWrite& b) {
  return a.timestamp == b.timestamp && a.column == b.column;
}

bool Before(const CellWrite& a, const CellWrite& b) {
  const int order = a.column.compare(b.column);
  return order != 0 ? order < 0 : a.timestamp < b.timestamp;
}

absl::Status ValidateNoDuplicate(std::span<const CellWrite> cells) {
  // Most callers give columns in order: then no copy is needed.
  if (std::is_sorted(cells.begin(), cells.end(), Before)) {
    if (std::adjacent_find(cells.begin(), cells.end(), SameCell) == cells.end()) return absl::OkStatus();
  } else {
    std::vector<CellWrite> sorted(cells.begin(), cells.end());
    std::sort(sorted.begin(), sorted.end(), Before);
    if (std::adjacent_find(sorted.begin(), sorted.end(), SameCell) == sorted.end()) return absl::OkStatus();
  }
  return Invalid("items: the same (column, timestamp) twice in one put");
}

}  // namespace

absl::Status ValidateRowKey(std::string_view row) {
  if (row.empty() || row.size() > kMaxRowKeyBytes) {
    return Invalid("row: a key has 1 to {} bytes, this one has {}", kMaxRowKeyBytes, row.size());
  }
  return absl::OkStatus();
}

absl::Status ValidateRead(std::string_view row, const ReadOptions& options) {
  if (auto status = ValidateRowKey(row); !status.ok()) return status;
  if (auto status = ValidateColumns(options.columns); !status.ok()) return status;
  if (options.limit == 0) return Invalid("limit: must be at least 1");
  if (options.after_column && options.after_column->size() > kMaxColumnNameBytes) {
    return Invalid("after_column: a name of {} bytes, the limit is {}", options.after_column->size(),
                   kMaxColumnNameBytes);
  }
  return ValidateChoice(options.versions, options.time_range, options.max_bytes);
}

absl::Status ValidatePut(std::string_view row, std::span<const CellWrite> cells,
                         const WriteOptions& options) {
  if (auto status = ValidateRowKey(row); !status.ok()) return status;
  if (cells.empty()) return Invalid("items: a put needs at least one");
  if (cells.size() > kMaxPageCells)
    return Invalid("items: {} cells in one put, the limit is {}", cells.size(), kMaxPageCells);
  size_t bytes = 0;
  for (const CellWrite& cell : cells) {
    if (auto status = ValidateColumn(cell.column); !status.ok()) return status;
    if (cell.value.size() > kMaxValueBytes) {
      return Invalid("value: {} bytes, the limit is {}", cell.value.size(), kMaxValueBytes);
    }
    if (cell.timestamp && *cell.timestamp > kMaxTimestamp) {
      return Invalid("timestamp: {} is beyond the limit of {}", *cell.timestamp, kMaxTimestamp);
    }
    bytes += cell.column.size() + cell.value.size();
  }
  if (bytes > kMaxPutBytes) {
    return Invalid("items: one put of {} bytes of names and values, the limit is {}", bytes, kMaxPutBytes);
  }
  if (options.condition) {
    if (auto status = ValidateColumn(options.condition->column); !status.ok()) {
      return Invalid("condition.{}", std::string(status.message()));
    }
    if (options.condition->equals && options.condition->equals->size() > kMaxValueBytes) {
      return Invalid("condition.equals: {} bytes, the limit is {}", options.condition->equals->size(),
                     kMaxValueBytes);
    }
  }
  return ValidateNoDuplicate(cells);
}

absl::Status ValidateDelete(std::string_view row, const DeleteOptions& options) {
  if (auto status = ValidateRowKey(row); !status.ok()) return status;
  if (options.columns && options.cells) return Invalid("columns, cells: give one of them, not both");
  if (options.columns && options.columns->empty()) {
    return Invalid("columns: an empty list; leave it out to delete the whole row");
  }
  if (auto status = ValidateColumns(options.columns); !status.ok()) return status;
  if (!options.cells) return absl::OkStatus();
  if (options.cells->empty()) return Invalid("cells: an empty list; leave it out to delete the whole row");
  if (options.cells->size() > kMaxPageCells) {
    return Invalid("cells: {} names, the limit is {}", options.cells->size(), kMaxPageCells);
  }
  for (const CellName& cell : *options.cells) {
    if (auto status = ValidateColumn(cell.column); !status.ok()) return status;
    if (cell.timestamp > kMaxTimestamp) {
      return Invalid("timestamp: {} is beyond the limit of {}", cell.timestamp, kMaxTimestamp);
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateScan(const RowRange& range, const ScanOptions& options) {
  if (range.start.size() > kMaxRowKeyBytes) {
    return Invalid("start_row: {} bytes, the limit is {}", range.start.size(), kMaxRowKeyBytes);
  }
  if (range.end.size() > kMaxRowKeyBytes) {
    return Invalid("end_row: {} bytes, the limit is {}", range.end.size(), kMaxRowKeyBytes);
  }
  if (!range.end.empty() && range.start >= range.end) return Invalid("start_row: is not before end_row");
  if (auto status = ValidateColumns(options.columns); !status.ok()) return status;
  return ValidateChoice(options.versions, options.time_range, options.max_bytes);
}

absl::Status ValidateBatch(size_t size) {
  if (size < 1 || size > kMaxBatchRows) {
    return Invalid("batch: {} entries, a batch has 1 to {}", size, kMaxBatchRows);
  }
  return absl::OkStatus();
}

absl::Status ValidateId(std::string_view field, uint64_t id) {
  if (id > kMaxId) return Invalid("{}: {} is not an ID: the top two bits must be zero", field, id);
  return absl::OkStatus();
}

absl::Status ValidateListing(const MappingListOptions& options) {
  if (auto status = ValidateLimit(options.limit); !status.ok()) return status;
  if (auto status = ValidateMaxBytes(options.max_bytes); !status.ok()) return status;
  if (options.offset != 0 && !options.marker.empty())
    return Invalid("offset, marker: give one of them, not both");
  return absl::OkStatus();
}

absl::Status ValidateObjectScan(const IdRange& range, const ObjectScanOptions& options) {
  if (auto status = ValidateIdRange(range); !status.ok()) return status;
  if (auto status = ValidateLimit(options.limit); !status.ok()) return status;
  return ValidateMaxBytes(options.max_bytes);
}

absl::Status ValidateMappingScan(const IdRange& range, const MappingScanOptions& options) {
  if (auto status = ValidateIdRange(range); !status.ok()) return status;
  return ValidateLimit(options.limit);
}

}  // namespace kvstore
