#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "bench/rows/rows_bench.h"

namespace kvstore::bench {
namespace {

constexpr uint64_t kMany = 1'000'000;
constexpr uint64_t kFew = 1'000;
constexpr uint32_t kNewest = 50;
constexpr uint32_t kPage = 100;
constexpr uint64_t kLatePage = 9'000;
constexpr int kDatasets = 200;

class GrowthBench {
 public:
  GrowthBench(const RowsOptions& options, KVStore& store)
      : rounds_{options.rounds, options.seconds}, store_(store), value_(MakeValue(1)) {}

  void Run(Report& report) {
    Check(store_.CreateDataset({.name = "growth", .max_versions = 0}));
    LoadVersions("few", kFew);
    LoadVersions("many", kMany);
    LoadColumns();
    Check(store_.Compact("growth", nullptr).status());
    report.growth.push_back(CompareGrowth(
        "newest_50_of_1000_and_1000000_versions", rounds_, [this](uint64_t) { return Newest("few"); },
        [this](uint64_t) { return Newest("many"); }));
    report.paged_read_rss_bytes = PagedReadGrowth();
    report.growth.push_back(CompareGrowth(
        "page_1_and_9000_of_1000000_columns", rounds_, [this](uint64_t) { return Page(""); },
        [this](uint64_t) { return Page(late_marker_); }));
  }

 private:
  void LoadVersions(std::string_view row, uint64_t versions) {
    std::vector<CellWrite> cells;
    for (uint64_t version = 0; version < versions; ++version) {
      cells.push_back({"c", value_, version});
      if (cells.size() < 10'000 && version + 1 < versions) continue;
      Check(store_.PutRow("growth", row, cells, {}).status());
      cells.clear();
    }
  }

  void LoadColumns() {
    std::vector<std::string> names;
    for (uint64_t column = 0; column < kMany; ++column) {
      names.push_back(fmt::format("column{:07}", column));
      if (names.size() < 10'000 && column + 1 < kMany) continue;
      std::vector<CellWrite> cells;
      cells.reserve(names.size());
      for (const std::string& name : names) cells.push_back({name, value_, 1});
      Check(store_.PutRow("growth", "wide", cells, {}).status());
      names.clear();
    }
  }

  uint64_t Newest(std::string_view row) {
    const auto read = store_.GetRow("growth", row, {.versions = kNewest});
    Check(read.status());
    if (read->items[0].cells.size() != kNewest) std::abort();
    return 1;
  }

  uint64_t Page(const std::string& marker) {
    const auto read = store_.GetRow("growth", "wide", {.limit = kPage, .marker = marker});
    Check(read.status());
    if (read->items.size() != kPage) std::abort();
    return 1;
  }

  /// Reads the wide row to its end, and stores the marker of the late page.
  uint64_t PagedReadGrowth() {
    const uint64_t before = ResidentBytes();
    ReadPages();
    return std::max<uint64_t>(1, peak_ > before ? peak_ - before : 0);
  }

  void ReadPages() {
    ReadOptions options{.limit = kPage};
    uint64_t columns = 0;
    peak_ = 0;
    for (uint64_t page = 1;; ++page) {
      const auto read = store_.GetRow("growth", "wide", options);
      Check(read.status());
      columns += read->items.size();
      if (page % 1000 == 0) peak_ = std::max(peak_, ResidentBytes());
      if (page == kLatePage - 1) late_marker_ = read->marker;
      if (read->marker.empty()) break;
      options.marker = read->marker;
    }
    if (columns != kMany) std::abort();
  }

  const Rounds rounds_;
  KVStore& store_;
  const std::string value_;
  std::string late_marker_;
  uint64_t peak_ = 0;
};

absl::StatusOr<GrowthResult> BenchDatasets(const RowsOptions& options) {
  auto one = BenchStore::Create(options.dir);
  if (!one.ok()) return one.status();
  auto many = BenchStore::Create(options.dir);
  if (!many.ok()) return many.status();
  const std::string value = MakeValue(2);
  const auto put = [&value](KVStore& store, const std::string& dataset, uint64_t i) {
    const std::string row = fmt::format("row{:016x}", i * 0x9E3779B97F4A7C15);
    std::vector<CellWrite> cells;
    for (const char* column : {"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9"})
      cells.push_back({column, value, {}});
    Check(store.PutRow(dataset, row, cells, {}).status());
    return uint64_t{1};
  };
  Check((*one)->store().CreateDataset({.name = "d0"}));
  for (int i = 0; i < kDatasets; ++i) {
    const std::string name = fmt::format("d{}", i);
    Check((*many)->store().CreateDataset({.name = name}));
    for (uint64_t row = 0; row < 100; ++row) put((*many)->store(), name, row);
  }
  return CompareGrowth(
      "put_row_10_with_1_and_200_datasets", {options.rounds, options.seconds},
      [&](uint64_t i) { return put((*one)->store(), "d0", i); },
      [&](uint64_t i) { return put((*many)->store(), "d0", i); });
}

}  // namespace

absl::Status BenchGrowth(const RowsOptions& options, Report& report) {
  {
    // Uses the default cache, because its memory counts as growth.
    auto bench = BenchStore::Create(options.dir, rocks::EngineOptions().cache_bytes);
    if (!bench.ok()) return bench.status();
    GrowthBench(options, (*bench)->store()).Run(report);
  }
  auto datasets = BenchDatasets(options);
  if (!datasets.ok()) return datasets.status();
  report.growth.push_back(*std::move(datasets));
  return absl::OkStatus();
}

}  // namespace kvstore::bench
