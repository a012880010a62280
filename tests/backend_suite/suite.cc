#include "tests/backend_suite/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace kvstore::testing {

void BackendSuite::Reopen() {
  backend_.reset();
  auto opened = GetParam().open(dir_.path(), datasets_);
  ASSERT_OK(opened);
  backend_ = *std::move(opened);
}

DatasetSpec BackendSuite::Create(DatasetSpec spec) {
  spec.backend = "test";
  spec.engine = GetParam().engine;
  spec.incarnation = datasets_.size() + 1;
  EXPECT_OK(backend_->CreateDataset(spec));
  datasets_.push_back(spec);
  return spec;
}

std::shared_ptr<RowStore> BackendSuite::Rows(uint32_t max_versions, uint64_t ttl_ms) {
  return *backend_->OpenRows(Create({.name = "rows", .max_versions = max_versions, .ttl_ms = ttl_ms}));
}

std::shared_ptr<ObjectStore> BackendSuite::Objects() {
  return *backend_->OpenObjects(Create({.name = "objects", .shape = Shape::kObjects, .type = 7}));
}

std::shared_ptr<MappingStore> BackendSuite::Mappings() {
  return *backend_->OpenMappings(Create({.name = "mappings", .shape = Shape::kMappings}));
}

void BackendSuite::Alter(const DatasetChange& change) {
  datasets_.back() = Apply(datasets_.back(), change);
  ASSERT_OK(backend_->AlterDataset(datasets_.back()));
}

void BackendSuite::Reclaim() { ASSERT_OK(backend_->Reclaim(spec(), nullptr)); }

absl::Status PutCell(RowStore& rows, std::string_view row, std::string_view column, std::string_view value,
                     std::optional<uint64_t> timestamp, const WriteOptions& options) {
  const CellWrite cell{column, value, timestamp};
  return rows.Put(row, {&cell, 1}, options).status();
}

std::string ToText(std::span<const Item> items) {
  std::string text;
  for (const Item& item : items) {
    for (const Cell& cell : item.cells) {
      text += fmt::format("{}{}@{}={}", text.empty() ? "" : " ", item.column, cell.timestamp, cell.value);
    }
  }
  return text;
}

std::string Read(RowStore& rows, std::string_view row, const ReadOptions& options) {
  const auto page = rows.Get(row, options, std::nullopt);
  EXPECT_OK(page);
  return page.ok() ? ToText(page->items) : page.status().ToString();
}

void AppendPage(std::vector<Item>& items, std::vector<Item> page) {
  auto from = page.begin();
  if (!items.empty() && !page.empty() && items.back().column == page.front().column) {
    std::move(from->cells.begin(), from->cells.end(), std::back_inserter(items.back().cells));
    ++from;
  }
  std::move(from, page.end(), std::back_inserter(items));
}

absl::StatusOr<std::vector<Item>> ReadPages(RowStore& rows, std::string_view row,
                                            const ReadOptions& options) {
  std::vector<Item> items;
  std::optional<RowPosition> after;
  do {
    auto page = rows.Get(row, options, after);
    if (!page.ok()) return page.status();
    if (page->items.size() > options.limit) return absl::InternalError("a page beyond its limit");
    if (page->next && page->items.empty()) return absl::InternalError("an empty page that is not the last");
    AppendPage(items, std::move(page->items));
    after = page->next;
  } while (after);
  return items;
}

absl::StatusOr<std::vector<ScannedRow>> ReadRange(const UnderTest& under_test, RowStore& rows,
                                                  const RowRange& range, const ScanOptions& options,
                                                  size_t pause) {
  std::vector<ScannedRow> all;
  auto scan = rows.Scan(range, options, std::nullopt);
  bool continues = false;
  for (size_t pieces = 1;; ++pieces) {
    if (!scan.ok()) return scan.status();
    ScannedRow row;
    const auto more = (*scan)->Next(row);
    if (!more.ok()) return more.status();
    if (!*more) break;
    if (row.items.empty()) return absl::InternalError("a scanned row without items");
    if (continues) {
      if (row.key != all.back().key) return absl::InternalError("a row that went on under another key");
      AppendPage(all.back().items, std::move(row.items));
    } else {
      all.push_back({row.key, std::move(row.items), false});
    }
    continues = row.continues;
    if (pause > 0 && pieces % pause == 0) scan = rows.Scan(range, options, (*scan)->position());
  }
  if (continues) return absl::InternalError("a row that was to go on did not");
  const auto by_key = [](const ScannedRow& a, const ScannedRow& b) { return a.key < b.key; };
  if (under_test.ordered || !range.shard.empty()) {
    if (!std::is_sorted(all.begin(), all.end(), by_key))
      return absl::InternalError("rows that were not in order");
  } else {
    std::sort(all.begin(), all.end(), by_key);
  }
  return all;
}

}  // namespace kvstore::testing
