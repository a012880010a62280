#include "bench/sequences/tenants_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <span>
#include <thread>
#include <utility>

#include "bench/harness/distribution.h"
#include "bench/harness/graph.h"
#include "bench/harness/report.h"
#include "bench/sequences/sequence_load.h"

namespace kvstore::bench {
namespace {

constexpr std::array<const char*, 4> kTenants = {"feed", "graph", "import", "scan"};

/// A dataset that the destructor drops.
class OwnDataset {
 public:
  OwnDataset(KVStore& store, const DatasetSpec& spec) : store_(store), name_(spec.name) {
    Check(store.CreateDataset(spec));
  }
  ~OwnDataset() { store_.DropDataset(name_, {}).IgnoreError(); }
  OwnDataset(const OwnDataset&) = delete;
  OwnDataset& operator=(const OwnDataset&) = delete;
  const std::string& name() const { return name_; }

 private:
  KVStore& store_;
  const std::string name_;
};

class Tenant {
 public:
  virtual ~Tenant() = default;
  virtual const char* Execute(int thread) = 0;
};

class Feed : public Tenant {
 public:
  Feed(KVStore& store, const TenantsOptions& options)
      : load_(options.users, options.load.threads), calls_(static_cast<size_t>(options.load.threads)) {
    auto made = MakeKvSequences(store, Durability::kProcess);
    Check(made.status());
    stores_.push_back(*std::move(made));
    load_.Load(stores_, options.events);
  }
  const char* Execute(int thread) override {
    SequenceStore& store = *stores_.front();
    const bool append = ++calls_[static_cast<size_t>(thread)] % 10 == 0;
    return append ? load_.Append(store, thread) : load_.ReadNewest(store, thread);
  }

 private:
  SequenceLoad load_;
  std::vector<uint64_t> calls_;  // of each thread
  std::vector<std::unique_ptr<SequenceStore>> stores_;
};

class GraphTenant : public Tenant {
 public:
  explicit GraphTenant(KVStore& store)
      : nodes_(store, {.name = "kv_bench_nodes", .shape = Shape::kObjects}),
        links_(store, {.name = "kv_bench_links", .shape = Shape::kMappings}),
        graph_(store, nodes_.name(), links_.name(), {}) {}
  const char* Execute(int /*thread*/) override {
    const uint64_t i = next_++;
    const GraphMix::Step step = mix_.At(i);
    graph_.Execute(step, i);
    return Name(step.op);
  }

 private:
  const OwnDataset nodes_;
  const OwnDataset links_;
  const GraphMix mix_;
  const Graph graph_;
  std::atomic<uint64_t> next_{0};
};

/// Puts batches of rows, always new ones.
class Import : public Tenant {
 public:
  static constexpr size_t kRows = 100;
  static constexpr size_t kCells = 10;

  Import(KVStore& store, const char* dataset) : store_(store), dataset_(store, {.name = dataset}) {}

  const char* Execute(int /*thread*/) override {
    std::array<std::string, kRows> keys;
    std::vector<CellWrite> cells;
    std::vector<RowWrite> batch;
    cells.reserve(kRows * kCells);
    for (std::string& key : keys) {
      key = KeyOf(next_++);
      for (size_t c = 0; c < kCells; ++c) cells.push_back({kColumns.at(c), value_, std::nullopt});
      batch.push_back({.row = key, .cells = std::span(cells).last(kCells)});
    }
    const auto written = store_.PutRows(dataset_.name(), batch);
    Check(written.status());
    for (const auto& one : *written) Check(one.status());
    return "put_100_rows";
  }

  static std::string KeyOf(uint64_t row) { return fmt::format("{:016x}", Scramble(row)); }
  const std::string& dataset() const { return dataset_.name(); }

 private:
  static constexpr std::array<std::string_view, kCells> kColumns = {"c0", "c1", "c2", "c3", "c4",
                                                                    "c5", "c6", "c7", "c8", "c9"};
  KVStore& store_;
  const OwnDataset dataset_;
  const std::string value_ = std::string(100, 'v');
  uint64_t next_ = 0;
};

class Scan : public Tenant {
 public:
  Scan(KVStore& store, uint64_t rows) : store_(store), rows_(rows), loaded_(store, "kv_bench_scan") {
    for (uint64_t row = 0; row < rows; row += Import::kRows) loaded_.Execute(0);
  }
  const char* Execute(int /*thread*/) override {
    constexpr int kRows = 1000;
    const auto cursor = store_.ScanRows(loaded_.dataset(), {.start = Import::KeyOf(random_() % rows_)}, {});
    Check(cursor.status());
    ScannedRow row;
    for (int i = 0; i < kRows; ++i) {
      const auto more = (*cursor)->Next(row);
      Check(more.status());
      if (!*more) break;
    }
    return "scan_1000_rows";
  }

 private:
  KVStore& store_;
  const uint64_t rows_;
  Import loaded_;
  std::mt19937_64 random_{1};
};

std::unique_ptr<Tenant> Make(std::string_view name, KVStore& store, const TenantsOptions& options) {
  if (name == "feed") return std::make_unique<Feed>(store, options);
  if (name == "graph") return std::make_unique<GraphTenant>(store);
  if (name == "import") return std::make_unique<Import>(store, "kv_bench_import");
  return std::make_unique<Scan>(store, options.rows);
}

/// Import and scan have no rate: they call without a pause.
LoadOptions LoadOf(std::string_view name, const TenantsOptions& options) {
  LoadOptions load = options.load;
  if (name == "import" || name == "scan") {
    load.threads = 1;
    load.rate = 0;
  }
  return load;
}

}  // namespace

absl::StatusOr<std::vector<TenantResult>> BenchTenants(KVStore& store, const TenantsOptions& options) {
  for (const std::string& name : options.tenants) {
    if (std::find(kTenants.begin(), kTenants.end(), name) == kTenants.end()) {
      return absl::InvalidArgumentError(
          fmt::format("tenants: '{}' is none of feed, graph, import and scan", name));
    }
  }
  std::vector<TenantResult> results;
  std::vector<std::unique_ptr<Tenant>> tenants;
  for (const char* const name : kTenants) {
    if (!Wanted(options.tenants, name)) continue;
    results.push_back({.name = name});
    tenants.push_back(Make(name, store, options));
  }
  const auto run = [&](size_t i) {
    return RunLoad(LoadOf(results[i].name, options), [&](int thread) { return tenants[i]->Execute(thread); });
  };
  for (size_t i = 0; i < tenants.size(); ++i) results[i].alone = run(i);
  std::vector<std::thread> threads;
  for (size_t i = 0; tenants.size() > 1 && i < tenants.size(); ++i) {
    threads.emplace_back([&, i] { results[i].together = run(i); });
  }
  for (std::thread& thread : threads) thread.join();
  if (tenants.size() == 1) results[0].together = results[0].alone;
  return results;
}

}  // namespace kvstore::bench
