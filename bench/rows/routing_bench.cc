#include "bench/rows/routing_bench.h"

#include <string>

#include "bench/harness/bench_store.h"

namespace kvstore::bench {
namespace {

constexpr char kDataset[] = "routed";
constexpr uint64_t kRows = 10'000;
/// Gets between two readings of the clock, which costs as much as the router.
constexpr uint64_t kTogether = 100;

std::string RowOf(uint64_t i) { return "user:" + std::to_string(i % kRows); }

}  // namespace

absl::StatusOr<Report> BenchRouting(int rounds, double seconds) {
  auto bench = BenchStore::Create("");
  if (!bench.ok()) return bench.status();
  KVStore& store = (*bench)->store();
  if (auto status = store.CreateDataset({.name = kDataset}); !status.ok()) return status;
  // Other datasets, so that the look-up is one among many.
  for (int i = 0; i < 50; ++i) {
    if (auto status = store.CreateDataset({.name = "other" + std::to_string(i)}); !status.ok()) return status;
  }
  const auto spec = store.GetDataset(kDataset);
  if (!spec.ok()) return spec.status();
  const auto rows = (*bench)->backend().OpenRows(*spec);
  if (!rows.ok()) return rows.status();
  Report report{.workload = "routing", .backend = "rocksdb"};
  DescribeMachine(report);
  // Missing rows cost least, so that the router's share is largest.
  const auto direct = [&](uint64_t i) {
    for (uint64_t k = 0; k < kTogether; ++k)
      Check((*rows)->Get(RowOf(i * kTogether + k), {}, std::nullopt).status());
    return kTogether;
  };
  const auto routed = [&](uint64_t i) {
    for (uint64_t k = 0; k < kTogether; ++k)
      Check(store.GetRow(kDataset, RowOf(i * kTogether + k), {}).status());
    return kTogether;
  };
  GrowthResult result =
      CompareGrowth("get_missing_row: direct, routed", {rounds, seconds, 1}, direct, routed);
  report.figures.emplace_back("router, ns a call", (result.large_us - result.small_us) * 1e3);
  report.growth.push_back(std::move(result));
  return report;
}

}  // namespace kvstore::bench
