#include "bench/rows/rows_bench.h"

#include <fmt/format.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "backends/rocksdb/engine/timestamps.h"
#include "backends/rocksdb/rows/cell_key.h"
#include "base/clock.h"

namespace kvstore::bench {
namespace {

constexpr size_t kColumns = 10;
constexpr size_t kVersionColumns = 3;
constexpr uint64_t kVersions = 1000;
constexpr uint32_t kNewest = 50;
constexpr std::string_view kEnd("\0\1", 2);       // ends an encoded component
constexpr std::string_view kAfterEnd("\0\2", 2);  // sorts after all keys with this component

std::string RowKey(uint64_t i) { return fmt::format("user:{:016x}", i * 0x9E3779B97F4A7C15); }

const std::array<std::string, kColumns>& ColumnNames() {
  static const std::array<std::string, kColumns> kNames = {"c0", "c1", "c2", "c3", "c4",
                                                           "c5", "c6", "c7", "c8", "c9"};
  return kNames;
}

/// Keeps the compiler from removing work whose result nobody reads.
template <typename T>
void Use(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

/// bench/guard tells the profiler to count the instructions of the function with this name.
[[gnu::noinline]] uint64_t CountedCalls(const Work& work, uint64_t calls) {
  uint64_t units = 0;
  for (uint64_t i = 0; i < calls; ++i) units += work(i);
  return units;
}

class RowsBench {
 public:
  RowsBench(const RowsOptions& options, BenchStore& bench)
      : options_(options),
        bench_(bench),
        rounds_{options.rounds, options.seconds},
        rows_(options.cells / kColumns),
        version_rows_(options.counted > 0 ? 5 : 100) {}

  std::vector<PathResult> Run() {
    Load();
    std::vector<PathResult> results;
    const auto measure = [&](const std::string& path, const Work& ours, const Work& raw) {
      if (!Wanted(options_.paths, path)) return;
      if (options_.counted > 0) {
        results.push_back({.path = path, .units = CountedCalls(ours, options_.counted)});
        return;
      }
      results.push_back(Compare(path, rounds_, ours, options_.compare ? raw : Work()));
    };
    measure(
        "get_row_10", [this](uint64_t i) { return GetOurs(i); }, [this](uint64_t i) { return GetRaw(i); });
    measure(
        "newest_1", [this](uint64_t i) { return NewestOurs(i); },
        [this](uint64_t i) { return NewestRaw(i); });
    measure(
        "newest_50_of_1000_x3", [this](uint64_t i) { return VersionsOurs(i); },
        [this](uint64_t i) { return VersionsRaw(i); });
    measure(
        "scan_cells", [this](uint64_t) { return ScanOurs(); }, [this](uint64_t) { return ScanRaw(); });
    measure(
        "missing_row", [this](uint64_t i) { return MissingOurs(i); },
        [this](uint64_t i) { return MissingRaw(i); });
    measure(
        "put_row_10", [this](uint64_t i) { return PutOurs(i); }, [this](uint64_t i) { return PutRaw(i); });
    return results;
  }

 private:
  KVStore& store() { return bench_.store(); }

  void Load() {
    Check(store().CreateDataset({.name = "rows"}));
    Check(store().CreateDataset({.name = "versions", .max_versions = 0}));
    // One for each side to write to, with the same settings.
    Check(store().CreateDataset({.name = "put_ours"}));
    Check(store().CreateDataset({.name = "put_raw"}));
    rows_handle_ = bench_.Handle("rows");
    versions_handle_ = bench_.Handle("versions");
    raw_handle_ = bench_.Handle("put_raw");
    for (uint64_t i = 0; i < 1000; ++i) values_.push_back(MakeValue(i));
    for (uint64_t i = 0; i < rows_; ++i) {
      keys_.push_back(RowKey(i));
      missing_.push_back(RowKey(i + rows_) + "x");
      PutRow("rows", keys_.back(), i, std::nullopt);
    }
    for (uint64_t row = 0; row < version_rows_; ++row) {
      for (uint64_t version = 0; version < kVersions; ++version) {
        std::vector<CellWrite> cells;
        for (size_t column = 0; column < kVersionColumns; ++column) {
          cells.push_back({ColumnNames()[column], Value(version), 1'000'000 + version});
        }
        Check(store().PutRow("versions", keys_[row], cells, {}).status());
      }
    }
    Check(store().Compact("rows", nullptr).status());
    Check(store().Compact("versions", nullptr).status());
    std::mt19937_64 random(1);
    for (size_t i = 0; i < 1 << 16; ++i) picks_.push_back(random() % rows_);
    // Loads the rows into the cache.
    for (uint64_t i = 0; i < rows_; ++i) Check(store().GetRow("rows", keys_[i], {}).status());
  }

  const std::string& Value(uint64_t i) const { return values_[i % values_.size()]; }
  const std::string& PickedRow(uint64_t i) const { return keys_[picks_[i % picks_.size()]]; }

  void PutRow(std::string_view dataset, std::string_view row, uint64_t i, std::optional<uint64_t> timestamp) {
    std::array<CellWrite, kColumns> cells;
    for (size_t column = 0; column < kColumns; ++column) {
      cells[column] = {ColumnNames()[column], Value(i + column), timestamp};
    }
    Check(store().PutRow(dataset, row, cells, {}).status());
  }

  // ---- ours ----

  uint64_t PutOurs(uint64_t i) {
    PutRow("put_ours", RowKey(i), i, std::nullopt);
    return 1;
  }

  uint64_t GetOurs(uint64_t i) {
    const auto row = store().GetRow("rows", PickedRow(i), ReadOptions());
    Check(row.status());
    if (row->items.size() != kColumns) std::abort();
    Use(row->items.data());
    return 1;
  }

  uint64_t NewestOurs(uint64_t i) {
    ReadOptions options;
    options.columns.emplace().push_back(ColumnNames()[i % kColumns]);
    const auto row = store().GetRow("rows", PickedRow(i), options);
    Check(row.status());
    if (row->items.size() != 1) std::abort();
    Use(row->items.data());
    return 1;
  }

  uint64_t VersionsOurs(uint64_t i) {
    ReadOptions options{.versions = kNewest};
    options.columns.emplace(ColumnNames().begin(), ColumnNames().begin() + kVersionColumns);
    const auto row = store().GetRow("versions", keys_[i % version_rows_], options);
    Check(row.status());
    if (row->items.size() != kVersionColumns || row->items[0].cells.size() != kNewest) std::abort();
    Use(row->items.data());
    return 1;
  }

  uint64_t MissingOurs(uint64_t i) {
    const auto row = store().GetRow("rows", missing_[picks_[i % picks_.size()]], ReadOptions());
    Check(row.status());
    if (!row->items.empty()) std::abort();
    return 1;
  }

  uint64_t ScanOurs() {
    auto cursor = store().ScanRows("rows", {}, {});
    Check(cursor.status());
    uint64_t cells = 0;
    ScannedRow row;
    while (true) {
      const auto more = (*cursor)->Next(row);
      Check(more.status());
      if (!*more) break;
      cells += row.items.size();
      Use(row.items.data());
    }
    if (cells != rows_ * kColumns) std::abort();
    return cells;
  }

  // ---- raw ----

  uint64_t PutRaw(uint64_t i) {
    batch_.Clear();
    const uint64_t timestamp = WallClockMs();
    const std::string row = RowKey(i);
    for (size_t column = 0; column < kColumns; ++column) {
      key_.assign(row).append(kEnd).append(ColumnNames()[column]).append(kEnd);
      rocks::AppendTimestamp(key_, timestamp);
      CheckRaw(batch_.Put(raw_handle_, key_, Value(i + column)));
    }
    CheckRaw(bench_.db().Write(rocksdb::WriteOptions(), &batch_));
    return 1;
  }

  uint64_t GetRaw(uint64_t i) { return ReadRaw(PickedRow(i), kColumns); }
  uint64_t MissingRaw(uint64_t i) { return ReadRaw(missing_[picks_[i % picks_.size()]], 0); }

  uint64_t ReadRaw(const std::string& row, size_t expected) {
    key_.assign(row).append(kEnd);
    bound_.assign(row).append(kAfterEnd);
    const rocksdb::Slice bound(bound_);
    rocksdb::ReadOptions read;
    read.iterate_upper_bound = &bound;
    const std::unique_ptr<rocksdb::Iterator> it(bench_.db().NewIterator(read, rows_handle_));
    std::vector<std::string> values;
    for (it->Seek(key_); it->Valid(); it->Next()) values.push_back(it->value().ToString());
    CheckRaw(it->status());
    if (values.size() != expected) std::abort();
    Use(values.data());
    return 1;
  }

  uint64_t NewestRaw(uint64_t i) {
    const std::string& row = PickedRow(i);
    key_.assign(row).append(kEnd).append(ColumnNames()[i % kColumns]).append(kEnd);
    bound_.assign(row).append(kAfterEnd);
    const rocksdb::Slice bound(bound_);
    rocksdb::ReadOptions read;
    read.iterate_upper_bound = &bound;
    const std::unique_ptr<rocksdb::Iterator> it(bench_.db().NewIterator(read, rows_handle_));
    it->Seek(key_);
    if (!it->Valid() || !it->key().starts_with(key_)) std::abort();
    const std::string value = it->value().ToString();
    Use(value.data());
    return 1;
  }

  uint64_t VersionsRaw(uint64_t i) {
    const std::string& row = keys_[i % version_rows_];
    bound_.assign(row).append(kAfterEnd);
    const rocksdb::Slice bound(bound_);
    rocksdb::ReadOptions read;
    read.iterate_upper_bound = &bound;
    const std::unique_ptr<rocksdb::Iterator> it(bench_.db().NewIterator(read, versions_handle_));
    std::vector<std::string> values;
    for (size_t column = 0; column < kVersionColumns; ++column) {
      key_.assign(row).append(kEnd).append(ColumnNames()[column]).append(kEnd);
      it->Seek(key_);
      for (uint32_t n = 0; n < kNewest && it->Valid() && it->key().starts_with(key_); ++n, it->Next()) {
        values.push_back(it->value().ToString());
      }
    }
    if (values.size() != kVersionColumns * kNewest) std::abort();
    Use(values.data());
    return 1;
  }

  uint64_t ScanRaw() {
    rocksdb::ReadOptions read;
    read.total_order_seek = true;
    read.fill_cache = false;
    const std::unique_ptr<rocksdb::Iterator> it(bench_.db().NewIterator(read, rows_handle_));
    uint64_t cells = 0;
    std::string value;
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      const rocksdb::Slice stored = it->value();
      value.assign(stored.data(), stored.size());
      Use(value.data());
      ++cells;
    }
    if (cells != rows_ * kColumns) std::abort();
    return cells;
  }

  static void CheckRaw(const rocksdb::Status& status) {
    if (!status.ok()) Check(absl::UnavailableError(status.ToString()));
  }

  const RowsOptions& options_;
  BenchStore& bench_;
  const Rounds rounds_;
  const uint64_t rows_;
  const uint64_t version_rows_;  // of kVersions in each of kVersionColumns
  rocksdb::ColumnFamilyHandle* rows_handle_ = nullptr;
  rocksdb::ColumnFamilyHandle* versions_handle_ = nullptr;
  rocksdb::ColumnFamilyHandle* raw_handle_ = nullptr;
  std::vector<std::string> keys_, missing_, values_;
  std::vector<uint64_t> picks_;
  rocksdb::WriteBatch batch_;
  std::string key_, bound_;
};

}  // namespace

std::string MakeValue(uint64_t i) {
  std::mt19937_64 random(i);
  std::string value;
  while (value.size() < 100) value += fmt::format("{:016x}", random());
  value.resize(100);
  return value;
}

absl::StatusOr<Report> BenchRows(const RowsOptions& options) {
  Report report{
      .workload = "rows",
      .backend = "rocksdb",
      .settings = {
          {"cells", options.cells}, {"value_bytes", 100}, {"rounds", static_cast<uint64_t>(options.rounds)}}};
  DescribeMachine(report);
  {
    auto bench = BenchStore::Create(options.dir);
    if (!bench.ok()) return bench.status();
    report.results = RowsBench(options, **bench).Run();
  }
  if (options.growth) {
    if (auto status = BenchGrowth(options, report); !status.ok()) return status;
  }
  return report;
}

}  // namespace kvstore::bench
