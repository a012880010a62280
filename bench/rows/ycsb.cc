#include "bench/rows/ycsb.h"

#include <fmt/format.h>

#include "bench/rows/ycsb_records.h"

namespace kvstore::bench {

absl::StatusOr<std::vector<YcsbResult>> BenchYcsb(KVStore& store, const YcsbOptions& options) {
  for (const char workload : options.workloads) {
    if (!YcsbRecords::IsWorkload(workload)) {
      return absl::InvalidArgumentError(fmt::format("workloads: '{}' is none of ABCDEF", workload));
    }
  }
  if (auto status = store.CreateDataset({.name = options.dataset, .max_versions = 1}); !status.ok())
    return status;
  std::vector<YcsbResult> results;
  {
    YcsbRecords records(
        store, {.dataset = options.dataset, .records = options.records, .threads = options.load.threads});
    records.Load();
    for (const char workload : options.workloads) {
      results.push_back({workload, RunLoad(options.load, [&records, workload](int thread) {
                           return records.Execute(workload, thread);
                         })});
    }
  }
  if (auto status = store.DropDataset(options.dataset, {}); !status.ok()) return status;
  return results;
}

}  // namespace kvstore::bench
