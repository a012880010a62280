#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <rocksdb/write_batch.h>

#include <memory>
#include <string>
#include <vector>

#include "backends/rocksdb/rows/cell_key.h"
#include "bench/harness/bench_store.h"
#include "bench/rows/rows_bench.h"

/// Measures up to how many cells it is better to delete a row cell by cell than by one range tombstone: the
/// write of either, and reads of the rows in between after a thousand rows were deleted that way.
/// rocks::kMaxPointDeletes follows from it; see docs/performance.md.
namespace kvstore::bench {
namespace {

constexpr int kRows = 1000;  // deleted, with as many left in between
enum Way { kPoints, kRange };

std::string RowPrefix(int row) {
  std::string key;
  AppendEncoded(key, fmt::format("row{:06}", row));
  return key;
}

/// A dataset with rows of `cells` cells, every other one to be deleted.
class Rows {
 public:
  explicit Rows(int cells) : cells_(cells) {
    auto bench = BenchStore::Create("");
    Check(bench.status());
    bench_ = *std::move(bench);
    Check(bench_->store().CreateDataset({.name = "rows", .max_versions = 0}));
    handle_ = bench_->Handle("rows");
    const std::string value = MakeValue(1);
    for (int row = 0; row < 2 * kRows; ++row) {
      rocksdb::WriteBatch batch;
      for (int cell = 0; cell < (row % 2 == 0 ? cells_ : 10); ++cell)
        Use(batch.Put(handle_, Key(row, cell), value));
      Use(bench_->db().Write({}, &batch));
    }
    Check(bench_->store().Compact("rows", nullptr).status());
  }

  /// Deletes as the store does: reads the keys, then deletes either way.
  void Delete(int row, Way way) {
    const std::string begin = RowPrefix(row);
    const std::string end = EndOf(begin);
    const rocksdb::Slice bound(end);
    rocksdb::ReadOptions read;
    read.iterate_upper_bound = &bound;
    const std::unique_ptr<rocksdb::Iterator> it(bench_->db().NewIterator(read, handle_));
    rocksdb::WriteBatch batch;
    if (way == kRange) {
      Use(batch.DeleteRange(handle_, begin, end));
    } else {
      for (it->Seek(begin); it->Valid(); it->Next()) Use(batch.Delete(handle_, it->key()));
    }
    Use(bench_->db().Write({}, &batch));
  }

  void DeleteAll(Way way) {
    for (int row = 0; row < 2 * kRows; row += 2) Delete(row, way);
  }
  void Flush() { Use(bench_->db().Flush({}, handle_)); }

  KVStore& store() { return bench_->store(); }

 private:
  static std::string Key(int row, int cell) {
    std::string key = RowPrefix(row);
    AppendEncoded(key, fmt::format("c{:06}", cell));
    rocks::AppendTimestamp(key, 1);
    return key;
  }
  static void Use(const rocksdb::Status& status) {
    if (!status.ok()) Check(absl::UnavailableError(status.ToString()));
  }

  const int cells_;
  std::unique_ptr<BenchStore> bench_;
  rocksdb::ColumnFamilyHandle* handle_ = nullptr;
};

void DeleteRow(benchmark::State& state, Way way) {
  Rows rows(static_cast<int>(state.range(0)));
  int row = 0;
  while (state.KeepRunning()) rows.Delete((row += 2) % (2 * kRows), way);
}

void ReadBetween(benchmark::State& state, Way way, bool flushed) {
  Rows rows(static_cast<int>(state.range(0)));
  rows.DeleteAll(way);
  if (flushed) rows.Flush();
  int row = 1;
  while (state.KeepRunning()) {
    const auto read = rows.store().GetRow("rows", fmt::format("row{:06}", (row += 2) % (2 * kRows)), {});
    Check(read.status());
    if (read->items.size() != 10) std::abort();
  }
}

/// Measures the first read after another range tombstone was written, which sorts all that are in memory
/// anew; or the next read, which finds them sorted.
void ReadAfterRange(benchmark::State& state, bool first) {
  Rows rows(10);
  int row = 0;
  const auto delete_one = [&] {
    rows.Delete(row, kRange);
    row += 2;
  };
  const auto read_one = [&] {
    const auto read = rows.store().GetRow("rows", "row000999", {});
    Check(read.status());
    if (read->items.size() != 10) std::abort();
  };
  for (int64_t i = 1; i < state.range(0); ++i) delete_one();
  while (state.KeepRunning()) {
    state.PauseTiming();
    delete_one();
    if (!first) read_one();
    state.ResumeTiming();
    read_one();
  }
}

void ScanAll(benchmark::State& state, Way way) {
  Rows rows(static_cast<int>(state.range(0)));
  rows.DeleteAll(way);
  rows.Flush();
  while (state.KeepRunning()) {
    auto cursor = rows.store().ScanRows("rows", {}, {});
    Check(cursor.status());
    int count = 0;
    ScannedRow row;
    while (*(*cursor)->Next(row)) ++count;
    if (count != kRows) std::abort();
  }
}

#define KV_SIZES Arg(10)->Arg(64)->Arg(128)->Arg(256)->Arg(1024)->Unit(benchmark::kMicrosecond)
// A row is deleted once: no more iterations than rows.
BENCHMARK_CAPTURE(DeleteRow, points, kPoints)->KV_SIZES->Iterations(kRows - 1);
BENCHMARK_CAPTURE(DeleteRow, range, kRange)->KV_SIZES->Iterations(kRows - 1);
BENCHMARK_CAPTURE(ReadBetween, points_in_memory, kPoints, false)->KV_SIZES;
BENCHMARK_CAPTURE(ReadBetween, range_in_memory, kRange, false)->KV_SIZES;
BENCHMARK_CAPTURE(ReadBetween, points_in_file, kPoints, true)->KV_SIZES;
BENCHMARK_CAPTURE(ReadBetween, range_in_file, kRange, true)->KV_SIZES;
// A few more ranges than the argument, so that the mean is that of about this number.
#define KV_RANGES Arg(1)->Arg(32)->Arg(128)->Arg(256)->Arg(512)->Iterations(8)->Unit(benchmark::kMicrosecond)
BENCHMARK_CAPTURE(ReadAfterRange, first, true)->KV_RANGES;
BENCHMARK_CAPTURE(ReadAfterRange, next, false)->KV_RANGES;
BENCHMARK_CAPTURE(ScanAll, points, kPoints)->KV_SIZES;
BENCHMARK_CAPTURE(ScanAll, range, kRange)->KV_SIZES;

}  // namespace
}  // namespace kvstore::bench

BENCHMARK_MAIN();
