#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/harness/bench_store.h"
#include "bench/rows/rows_bench.h"

/// Measures what a delete costs after many rows were deleted, and what a read of another row costs then:
///
///   mass_delete_bench [COLUMNS] [ROWS]
/// It writes rows and deletes them one after another, and reads a row that stays after each delete.
/// rocks::kMaxPointDeletes and kMaxRanges follow from it; see docs/performance.md.
namespace kvstore::bench {
namespace {

using Clock = std::chrono::steady_clock;

double Micros(Clock::time_point since) {
  return std::chrono::duration<double, std::micro>(Clock::now() - since).count();
}

double Percentile(std::vector<double> values, double part) {
  const auto at = static_cast<ptrdiff_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<size_t>(at)];
}

void Run(int columns, int rows) {
  auto bench = BenchStore::Create("");
  Check(bench.status());
  KVStore& store = (*bench)->store();
  Check(store.CreateDataset({.name = "rows", .max_versions = 0}));
  const std::string value = MakeValue(1);
  std::vector<std::string> names;
  std::vector<CellWrite> cells;
  for (int i = 0; i < columns; ++i) names.push_back(fmt::format("c{:06}", i));
  for (const std::string& name : names) cells.push_back({name, value, 1});
  const auto key = [](int row) { return fmt::format("row{:08}", row); };
  for (int row = 0; row < rows; ++row) Check(store.PutRow("rows", key(row), cells, {}).status());
  Check(
      store.PutRow("rows", "stays", std::span(cells).first(std::min<size_t>(cells.size(), 10)), {}).status());
  const int window = std::max(rows / 100, 100);
  std::vector<double> deletes;
  std::vector<double> reads;
  fmt::print("{:>10}{:>12}{:>12}{:>12}{:>12}   us, rows of {} columns\n", "deleted", "p50", "p99", "read p50",
             "read p99", columns);
  const auto started = Clock::now();
  for (int row = 0; row < rows; ++row) {
    auto since = Clock::now();
    Check(store.DeleteRow("rows", key(row), {}));
    deletes.push_back(Micros(since));
    since = Clock::now();
    Check(store.GetRow("rows", "stays", {}).status());
    reads.push_back(Micros(since));
    const int done = row + 1;
    const bool told = done == window || done == rows / 10 || done == rows / 2 || done == rows;
    if (told) {
      fmt::print("{:>10}{:>12.1f}{:>12.1f}{:>12.1f}{:>12.1f}\n", done, Percentile(deletes, 0.5),
                 Percentile(deletes, 0.99), Percentile(reads, 0.5), Percentile(reads, 0.99));
      std::fflush(stdout);
    }
    if (done % window == 0) {
      deletes.clear();
      reads.clear();
    }
  }
  fmt::print("all in {:.1f} s\n", Micros(started) / 1e6);
}

}  // namespace
}  // namespace kvstore::bench

int main(int argc, char** argv) {
  kvstore::bench::Run(argc > 1 ? std::atoi(argv[1]) : 200, argc > 2 ? std::atoi(argv[2]) : 100'000);
}
