#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "backends/rocksdb/data_dir.h"
#include "backends/rocksdb/engine.h"
#include "kvstore_api/backend.h"

namespace kvstore {

/// The embedded backend: one RocksDB in a directory, with a column family for each dataset.
///
/// Stores that it opened keep the database open; the directory is released when backend and stores are gone.
class RocksDbBackend : public Backend {
 public:
  using Options = rocks::EngineOptions;

  /// Opens the database of `dir`, and closes it with the backend.
  ///
  /// datasets  those that the catalog says are here; DATA_LOSS if the data of one is not. Data of others is
  ///           left alone.
  /// moving    those of migrations of which this is the other side: they may be here.
  static absl::StatusOr<std::unique_ptr<RocksDbBackend>> Open(rocks::DataDir dir,
                                                              std::span<const DatasetSpec> datasets,
                                                              std::span<const DatasetSpec> moving,
                                                              const Options& options);

  Capabilities capabilities() const override {
    return {.rows = true, .objects = true, .mappings = true, .migration = true};
  }
  absl::Status CreateDataset(const DatasetSpec& spec) override;
  absl::Status AlterDataset(const DatasetSpec& spec) override;
  absl::Status DropDataset(const DatasetSpec& spec) override;
  absl::StatusOr<std::shared_ptr<RowStore>> OpenRows(const DatasetSpec& spec) override;
  absl::StatusOr<std::shared_ptr<ObjectStore>> OpenObjects(const DatasetSpec& spec) override;
  absl::StatusOr<std::shared_ptr<MappingStore>> OpenMappings(const DatasetSpec& spec) override;
  absl::StatusOr<ReclaimResult> Reclaim(const DatasetSpec& spec, const Progress& progress) override;
  absl::StatusOr<DatasetStats> Stats(const DatasetSpec& spec) override;
  absl::StatusOr<std::unique_ptr<MigrationEndpoint>> OpenForMigration(const DatasetSpec& spec) override;
  absl::Status CheckWrites() override { return engine_->CheckWrites(); }
  void Describe(MetricsSink& sink) const override;

  /// What lies beneath, for tests and benchmarks that arrange files by hand.
  rocks::Engine& engine() { return *engine_; }

 private:
  explicit RocksDbBackend(std::shared_ptr<rocks::Engine> engine) : engine_(std::move(engine)) {}
  absl::StatusOr<std::shared_ptr<rocks::Family>> Find(const DatasetSpec& spec) const;

  const std::shared_ptr<rocks::Engine> engine_;
  std::mutex objects_mutex_;
  /// One store a dataset, by incarnation, because it has the counters of IDs.
  std::map<uint64_t, std::weak_ptr<ObjectStore>> objects_;  // guarded by objects_mutex_
};

}  // namespace kvstore
