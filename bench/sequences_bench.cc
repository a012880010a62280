#include "bench/sequences_bench.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <random>

#include "bench/rows_bench.h"

namespace kvstore::bench {
namespace {

constexpr std::array<std::string_view, 4> kKinds = {"click", "view", "save", "search"};
constexpr size_t kBatch = 100;

}  // namespace

absl::StatusOr<Report> BenchSequences(const SequencesOptions& options) {
  Report report{.workload = "sequences",
                .backend = "rocksdb",
                .settings = {{"events", options.events}, {"users", options.users}}};
  DescribeMachine(report);
  auto bench = BenchStore::Create(options.dir);
  if (!bench.ok()) return bench.status();
  KVStore& store = (*bench)->store();
  Check(store.CreateDataset({.name = "sequences", .max_versions = 0}));

  std::mt19937_64 random(7);
  std::vector<std::string> users;
  for (uint64_t i = 0; i < options.users; ++i) users.push_back(fmt::format("user:{}", i));
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::string> values(kBatch);
  std::vector<CellWrite> cells(kBatch);
  std::vector<RowWrite> writes(kBatch);
  for (uint64_t event = 0; event < options.events;) {
    size_t size = 0;
    for (; size < kBatch && event < options.events; ++size, ++event) {
      values[size] = fmt::format("pin:{}", random() % 1'000'000'000);
      cells[size] = {kKinds[random() % kKinds.size()], values[size], 1'700'000'000'000 + event};
      writes[size] = {.row = users[random() % users.size()], .cells = {&cells[size], 1}};
    }
    const auto results = store.PutRows("sequences", std::span(writes).first(size));
    Check(results.status());
    for (const auto& result : *results) Check(result.status());
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  report.results.push_back({.path = "append_event_batch_100",
                            .ours_ops_s = static_cast<double>(options.events) / seconds,
                            .p50_us = seconds * 1e6 / static_cast<double>(options.events),
                            .p99_us = 0});
  report.results.push_back(Compare(
      "newest_50_of_a_kind", {.rounds = 3},
      [&](uint64_t i) {
        ReadOptions read{.versions = 50};
        read.columns.emplace().emplace_back(kKinds[i % kKinds.size()]);
        Check(store.GetRow("sequences", users[(i * 7919) % users.size()], read).status());
        return uint64_t{1};
      },
      nullptr));
  return report;
}

}  // namespace kvstore::bench
