#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "backend_api/backend.h"

/// A backend whose steps a test can pause, or let fail.
namespace kvstore::testing {

/// The tables of a fleet, which several processes may use: by name the incarnation of the dataset that each
/// belongs to.
struct Tables {
  std::mutex mutex;
  std::map<std::string, uint64_t> tables;  // guarded by mutex

  uint64_t Find(const std::string& name) {
    const std::lock_guard lock(mutex);
    const auto found = tables.find(name);
    return found == tables.end() ? 0 : found->second;
  }
};

/// A process' backend on those tables. A real backend cannot be paused between two of its steps for as long
/// as another process needs, nor fail at one of them at will.
class TablesBackend : public Backend {
 public:
  struct Hooks {
    std::function<absl::Status()> create = [] { return absl::OkStatus(); };
    std::function<absl::Status()> alter = [] { return absl::OkStatus(); };
    std::function<absl::Status()> drop = [] { return absl::OkStatus(); };
    std::atomic<int> drops{0};
  };

  TablesBackend(Tables& tables, Hooks& hooks) : tables_(tables), hooks_(hooks) {}
  Capabilities capabilities() const override { return {.rows = true, .shards = true}; }
  absl::Status CreateDataset(const DatasetSpec& spec) override {
    {
      const std::lock_guard lock(tables_.mutex);
      tables_.tables.insert_or_assign(spec.name, spec.incarnation);
    }
    return hooks_.create();
  }
  absl::Status AlterDataset(const DatasetSpec&) override { return hooks_.alter(); }
  absl::Status DropDataset(const DatasetSpec& spec) override {
    ++hooks_.drops;
    {
      const std::lock_guard lock(tables_.mutex);
      tables_.tables.erase(spec.name);
    }
    return hooks_.drop();
  }
  absl::StatusOr<std::shared_ptr<RowStore>> OpenRows(const DatasetSpec&) override {
    return std::shared_ptr<RowStore>();
  }
  absl::StatusOr<std::shared_ptr<ObjectStore>> OpenObjects(const DatasetSpec&) override {
    return absl::UnimplementedError("not here");
  }
  absl::StatusOr<std::shared_ptr<MappingStore>> OpenMappings(const DatasetSpec&) override {
    return absl::UnimplementedError("not here");
  }
  /// Runs until `progress` stops it.
  absl::StatusOr<ReclaimResult> Reclaim(const DatasetSpec&, const Progress& progress) override {
    while (progress(0, 1)) std::this_thread::yield();
    return absl::CancelledError("was stopped");
  }
  absl::StatusOr<DatasetStats> Stats(const DatasetSpec&) override { return DatasetStats{}; }
  void Describe(MetricsSink&) const override {}

 private:
  Tables& tables_;
  Hooks& hooks_;
};

}  // namespace kvstore::testing
