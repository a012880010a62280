#include "backend_api/page_builder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "kvstore_api/limits.h"

namespace kvstore {

PageQuery::PageQuery(const ReadOptions& options, uint64_t oldest, uint32_t dataset_max_versions)
    : versions(options.versions),
      limit(options.limit),
      max_bytes(options.max_bytes),
      range{std::max(options.time_range.start, oldest), options.time_range.end},
      max_versions(dataset_max_versions) {}

ReadOptions EachRow(const ScanOptions& options) {
  return {.columns = options.columns,
          .versions = options.versions,
          .time_range = options.time_range,
          .limit = std::numeric_limits<uint32_t>::max(),
          .max_bytes = options.max_bytes,
          .marker = {},
          .after_column = {}};
}

void PageBuilder::BeginColumn(std::string_view column) {
  column_ = column;
  begun_ = true;
  seen_ = 0;
  taken_ = after_ && after_->cells > 0 && after_->column == column ? after_->cells : 0;
}

PageBuilder::Verdict PageBuilder::Inspect(std::string_view column, uint64_t timestamp, uint64_t value_bytes) {
  if (!begun_ || column != column_) BeginColumn(column);
  const bool inside = after_ && after_->cells > 0 && after_->column == column;
  // Where all versions are kept, cells newer than the range were not listed, and need not be counted.
  ++seen_;
  if (query_.max_versions != 0 && seen_ > query_.max_versions) return {Wants::kNextColumn};
  if (taken_ >= query_.versions || timestamp < query_.range.start) return {Wants::kNextColumn};
  const bool last_visible = query_.max_versions != 0 && seen_ == query_.max_versions;
  if (timestamp >= query_.range.end || (inside && timestamp >= after_->timestamp)) {
    return {last_visible ? Wants::kNextColumn : Wants::kMore};
  }
  // The cell is to be returned, on this page or on the next.
  const bool new_item = items_.empty() || items_.back().column != column;
  const size_t bytes = (new_item ? column.size() : 0) + value_bytes;
  if ((new_item && items_.size() == query_.limit) || page_cells_ == kMaxPageCells ||
      (!items_.empty() && bytes_ + bytes > query_.max_bytes)) {
    full_ = true;
    return {Wants::kNothing};
  }
  bytes_ += bytes;
  ++page_cells_;
  ++taken_;
  return {taken_ >= query_.versions || last_visible ? Wants::kNextColumn : Wants::kMore, /*take=*/true};
}

void PageBuilder::Add(std::string column, uint64_t timestamp, std::string value) {
  if (items_.empty() || items_.back().column != column) items_.push_back({std::move(column), {}});
  items_.back().cells.push_back({timestamp, std::move(value)});
}

RowPage PageBuilder::Finish() {
  RowPage page;
  if (full_) {
    const Item& last = items_.back();
    RowPosition next{.column = last.column};
    // If the cell that did not fit is of the page's last column, the next page continues inside that column.
    if (last.column == column_) {
      next.cells = static_cast<uint32_t>(taken_);
      next.timestamp = last.cells.back().timestamp;
    }
    page.next = std::move(next);
  }
  page.items = std::move(items_);
  return page;
}

}  // namespace kvstore
