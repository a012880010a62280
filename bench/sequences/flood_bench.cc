#include "bench/sequences/flood_bench.h"

#include <fmt/format.h>

#include <atomic>
#include <string>
#include <utility>

#include "bench/harness/report.h"

namespace kvstore::bench {
namespace {

constexpr char kFloodDataset[] = "kv_bench_flood";
constexpr uint64_t kFloodRows = 10'000;
constexpr size_t kFloodValueBytes = 100;
constexpr char kFlood[] = "flood";
constexpr char kOthers[] = "others";

std::string FloodRow(uint64_t i) { return fmt::format("row:{:06}", i % kFloodRows); }

absl::Status LoadRows(KVStore& store) {
  if (auto status = store.CreateDataset({.name = kFloodDataset}); !status.ok()) return status;
  const std::string value(kFloodValueBytes, 'v');
  const CellWrite cell{"c", value, 1};
  for (uint64_t i = 0; i < kFloodRows; ++i) {
    if (auto put = store.PutRow(kFloodDataset, FloodRow(i), {&cell, 1}, {}); !put.ok()) return put.status();
  }
  return absl::OkStatus();
}

/// Returns what one kind of calls did in a round.
LoadRound Part(const LoadRound& round, const char* kind, double seconds) {
  const auto found = round.latencies.find(kind);
  if (found == round.latencies.end()) return {};
  return {.ops_s = static_cast<double>(found->second.count()) / seconds,
          .latencies = {{kind, found->second}}};
}

}  // namespace

absl::StatusOr<FloodResult> BenchFlood(const std::vector<std::unique_ptr<KVStore>>& callers,
                                       const FloodOptions& options) {
  if (auto status = LoadRows(*callers.front()); !status.ok()) return status;
  const int each = options.load.threads;
  std::atomic<uint64_t> next{0};
  // The first so many threads are those of the first caller.
  const auto run = [&](int of_first) {
    LoadOptions load = options.load;
    load.rounds = 1;
    load.threads = of_first + each * static_cast<int>(callers.size() - 1);
    return RunLoad(load,
                   [&, of_first](int thread) {
                     const bool is_first = thread < of_first;
                     const size_t caller = is_first ? 0 : 1 + static_cast<size_t>((thread - of_first) / each);
                     const uint64_t i = next.fetch_add(7919, std::memory_order_relaxed);
                     Check(callers.at(caller)->GetRow(kFloodDataset, FloodRow(i), {}).status());
                     return is_first ? kFlood : kOthers;
                   })
        .front();
  };
  FloodResult result;
  for (int i = 0; i < options.load.rounds; ++i) {
    const LoadRound equal = run(each);
    const LoadRound flooded = run(options.flood_threads);
    for (auto& [caller, kind] : {std::pair(&result.first, kFlood), std::pair(&result.others, kOthers)}) {
      caller->equal.push_back(Part(equal, kind, options.load.seconds));
      caller->flooded.push_back(Part(flooded, kind, options.load.seconds));
    }
  }
  result.kept = Ratio(result.others.flooded, result.others.equal);
  if (auto status = callers.front()->DropDataset(kFloodDataset, {}); !status.ok()) return status;
  return result;
}

}  // namespace kvstore::bench
