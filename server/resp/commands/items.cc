#include "server/resp/commands/items.h"

#include <algorithm>
#include <string>
#include <utility>

#include "backend_api/scan_budget.h"
#include "kvstore_api/limits.h"
#include "server/resp/commands/errors.h"
#include "server/resp/commands/numbers.h"
#include "server/resp/commands/words.h"

namespace kvstore::server::resp {
namespace {

/// How many rows a page has unless the caller says otherwise, and how many at most.
constexpr uint32_t kUsualRows = 100;
constexpr uint32_t kMaxRows = 10'000;
/// A page of a scan ends when it has so many bytes,
constexpr size_t kScanPageBytes = size_t{1} << 20;
/// or when so many cells were looked at.
constexpr uint64_t kScanPageBudget = 20'000;

absl::Status ReadColumns(Arguments arguments, size_t& i, PageOptions& options) {
  const auto count = ParseUnsigned(arguments[i + 1]);
  if (!count || *count == 0 || *count > arguments.size() - i - 2) {
    return absl::InvalidArgumentError("COLUMNS n column ...: n must say how many names follow");
  }
  const Arguments names = arguments.subspan(i + 2, static_cast<size_t>(*count));
  options.columns.emplace(names.begin(), names.end());
  i += 2 + names.size();
  return absl::OkStatus();
}

absl::Status ReadRange(Arguments arguments, size_t& i, PageOptions& options) {
  const auto start = ParseUnsigned(arguments[i + 1]);
  const auto end = ParseUnsigned(arguments[i + 2]);
  if (!start || !end) {
    return absl::InvalidArgumentError("RANGE start end: must be timestamps, start inclusive, end exclusive");
  }
  options.range = {.start = *start, .end = *end};
  i += 3;
  return absl::OkStatus();
}

size_t SizeOf(const ScannedRow& row) {
  size_t bytes = row.key.size();
  for (const Item& item : row.items) {
    bytes += item.column.size();
    for (const Cell& cell : item.cells) bytes += cell.value.size() + sizeof(cell.timestamp);
  }
  return bytes;
}

absl::Status ScanRows(StoreCall& call, std::string_view dataset, const PageOptions& page, Encoder& out) {
  ScanOptions options{.columns = page.columns,
                      .versions = page.versions,
                      .time_range = page.range,
                      .max_bytes = kScanPageBytes,
                      .marker = page.marker};
  const auto cursor = call.router.ScanRows(
      dataset, {.start = std::string(page.start), .end = std::string(page.end)}, options);
  if (!cursor.ok()) return cursor.status();
  const uint32_t most = std::min(page.limit.value_or(kUsualRows), kMaxRows);
  const ScanBudget budget(kScanPageBudget);
  std::vector<ScannedRow> rows;
  size_t bytes = 0;
  bool ended = false;
  while (rows.size() < most && bytes < kScanPageBytes) {
    ScannedRow row;
    const auto more = (*cursor)->Next(row);
    if (IsPaused(more.status())) break;
    if (!more.ok()) return more.status();
    if (!*more) {
      ended = true;
      break;
    }
    bytes += SizeOf(row);
    rows.push_back(std::move(row));
  }
  out.Array(2);
  out.Array(rows.size());
  for (const ScannedRow& row : rows) {
    out.Array(3);
    out.Bulk(row.key);
    AppendItems(row.items, out);
    out.Integer(row.continues ? 1 : 0);
  }
  AppendMarker(ended ? "" : (*cursor)->marker(), out);
  return absl::OkStatus();
}

absl::StatusOr<IdRange> ReadIdRange(const PageOptions& page) {
  if (page.columns || page.versions != 1) {
    return absl::InvalidArgumentError("COLUMNS, VERSIONS and RANGE are for datasets of rows");
  }
  IdRange range;
  const auto start = page.start.empty() ? range.start : ParseUnsigned(page.start);
  const auto end = page.end.empty() ? range.end : ParseUnsigned(page.end);
  if (!start || !end) return absl::InvalidArgumentError("START, END: must be IDs, START inclusive");
  return IdRange{.start = *start, .end = *end};
}

absl::Status ScanObjects(StoreCall& call, std::string_view dataset, const PageOptions& page, Encoder& out) {
  const auto range = ReadIdRange(page);
  if (!range.ok()) return range.status();
  const auto found = call.router.ScanObjects(
      dataset, *range,
      {.limit = page.limit.value_or(kUsualRows), .max_bytes = kScanPageBytes, .marker = page.marker});
  if (!found.ok()) return found.status();
  out.Array(2);
  out.Array(found->objects.size());
  for (const Object& object : found->objects) {
    out.Array(3);
    out.Bulk(std::to_string(object.id));
    out.Integer(static_cast<int64_t>(object.timestamp));
    out.Bulk(object.data);
  }
  AppendMarker(found->marker, out);
  return absl::OkStatus();
}

absl::Status ScanMappings(StoreCall& call, std::string_view dataset, const PageOptions& page, Encoder& out) {
  const auto range = ReadIdRange(page);
  if (!range.ok()) return range.status();
  const auto found = call.router.ScanMappings(
      dataset, *range, {.limit = page.limit.value_or(kUsualRows), .marker = page.marker});
  if (!found.ok()) return found.status();
  out.Array(2);
  out.Array(found->entries.size());
  for (const ScannedMapping& entry : found->entries) {
    out.Array(3);
    out.Bulk(std::to_string(entry.from));
    out.Bulk(std::to_string(entry.to));
    out.Integer(static_cast<int64_t>(entry.sequence));
  }
  AppendMarker(found->marker, out);
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadPageOption(Arguments arguments, size_t& i, PageOptions& options, bool scans) {
  const std::string_view name = arguments[i];
  const size_t left = arguments.size() - i - 1;
  if (left == 0) return SyntaxError();
  if (Is(name, "columns") && !options.columns) return ReadColumns(arguments, i, options);
  if (Is(name, "range") && left >= 2) return ReadRange(arguments, i, options);
  const std::string_view value = arguments[i + 1];
  if (Is(name, "versions") || Is(name, "limit")) {
    const auto number = ParseNumber<uint32_t>(value);
    if (!number) return NotAnIntegerError();
    if (Is(name, "versions")) {
      options.versions = *number;
    } else {
      options.limit = *number;
    }
  } else if (Is(name, "marker")) {
    options.marker = value;
  } else if (Is(name, "start") && scans) {
    options.start = value;
  } else if (Is(name, "end") && scans) {
    options.end = value;
  } else {
    return SyntaxError();
  }
  i += 2;
  return absl::OkStatus();
}

void AppendItems(const std::vector<Item>& items, Encoder& out) {
  out.Array(items.size());
  for (const Item& item : items) {
    out.Array(2);
    out.Bulk(item.column);
    out.Array(item.cells.size());
    for (const Cell& cell : item.cells) {
      out.Array(2);
      out.Integer(static_cast<int64_t>(cell.timestamp));
      out.Bulk(cell.value);
    }
  }
}

void AppendMarker(std::string_view marker, Encoder& out) {
  if (marker.empty()) return out.Null();
  out.Bulk(marker);
}

absl::Status ScanStore(StoreCall& call, Arguments arguments, Encoder& out) {
  PageOptions page;
  for (size_t i = 2; i < arguments.size();) {
    if (auto status = ReadPageOption(arguments, i, page, /*scans=*/true); !status.ok()) return status;
  }
  const auto spec = call.router.GetDataset(arguments[1]);
  if (!spec.ok()) return spec.status();
  if (page.limit == 0u) return absl::InvalidArgumentError("LIMIT: must be at least 1");
  switch (spec->shape) {
    case Shape::kRows:
      return ScanRows(call, arguments[1], page, out);
    case Shape::kObjects:
      return ScanObjects(call, arguments[1], page, out);
    case Shape::kMappings:
      return ScanMappings(call, arguments[1], page, out);
  }
  return absl::InternalError("the dataset has an unknown shape");
}

}  // namespace kvstore::server::resp
