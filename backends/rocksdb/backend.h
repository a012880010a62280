#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "backend_api/backend.h"
#include "backends/rocksdb/engine/data_dir.h"
#include "backends/rocksdb/engine/engine.h"
#include "backends/rocksdb/objects/local_ids.h"

namespace kvstore {

/// The embedded backend: one RocksDB database in a directory, with a column family for each dataset.
///
/// Stores that it has opened keep the database open; the directory is unlocked when the backend and all its
/// stores are gone.
class RocksDbBackend : public Backend {
 public:
  using Options = rocks::EngineOptions;

  /// Opens the database in `dir`; it is closed with the backend and its stores.
  ///
  /// datasets  those that the catalog says are here; DATA_LOSS if the data of one is not. Other data is left
  ///           alone.
  /// moving    datasets whose migration has its other side here: their data may be here.
  static absl::StatusOr<std::unique_ptr<RocksDbBackend>> Open(rocks::DataDir dir,
                                                              std::span<const DatasetSpec> datasets,
                                                              std::span<const DatasetSpec> moving,
                                                              const Options& options);

  Capabilities capabilities() const override {
    return {.rows = true,
            .objects = true,
            .mappings = true,
            .migration = true,
            .changes = true,
            .creates_at_once = true};
  }
  absl::Status CreateDataset(const DatasetSpec& spec) override;
  absl::Status AlterDataset(const DatasetSpec& spec) override;
  absl::Status DropDataset(const DatasetSpec& spec) override;
  absl::StatusOr<std::shared_ptr<RowStore>> OpenRows(const DatasetSpec& spec) override;
  absl::StatusOr<std::shared_ptr<ObjectStore>> OpenObjects(const DatasetSpec& spec) override;
  absl::StatusOr<std::shared_ptr<MappingStore>> OpenMappings(const DatasetSpec& spec) override;
  absl::StatusOr<ReclaimResult> Reclaim(const DatasetSpec& spec, const Progress& progress) override;
  absl::StatusOr<DatasetStats> Stats(const DatasetSpec& spec) override;
  absl::StatusOr<std::unique_ptr<UnitReader>> OpenUnits(const DatasetSpec& spec) override;
  absl::StatusOr<std::unique_ptr<MigrationEndpoint>> OpenForMigration(const DatasetSpec& spec) override;
  absl::StatusOr<std::string> StartChanges(const DatasetSpec& spec, ChangesFrom from) override;
  absl::StatusOr<UnitChanges> ReadChanges(const DatasetSpec& spec, std::string_view position,
                                          const ChangeLimits& limits) override;
  absl::Status SetConsumer(const DatasetSpec& spec, std::string_view name,
                           std::string_view position) override;
  absl::StatusOr<std::vector<UnitConsumer>> ListConsumers(const DatasetSpec& spec) override;
  absl::Status DropConsumer(const DatasetSpec& spec, std::string_view name) override;
  absl::StatusOr<std::unique_ptr<Checkpoint>> MakeCheckpoint() override { return engine_->MakeCheckpoint(); }
  /// Opens the log of all writes, which is sent to a store of backups between two checkpoints.
  std::unique_ptr<WriteLog> OpenWriteLog();
  absl::Status CheckWrites() override { return engine_->CheckWrites(); }
  void Describe(MetricsSink& sink) const override;

  /// The engine, for tests and benchmarks that arrange files by hand.
  rocks::Engine& engine() { return *engine_; }

 private:
  explicit RocksDbBackend(std::shared_ptr<rocks::Engine> engine) : engine_(std::move(engine)) {}
  absl::StatusOr<std::shared_ptr<rocks::Family>> Find(const DatasetSpec& spec) const;

  const std::shared_ptr<rocks::Engine> engine_;
  const std::shared_ptr<rocks::LocalIdsRegistry> ids_ = std::make_shared<rocks::LocalIdsRegistry>();
};

}  // namespace kvstore
