#pragma once

#include <memory>

#include "backend_api/backend.h"
#include "backends/cached/protocol/caches.h"

namespace kvstore {

/// Caches in front of a backend. Reads of objects and of mappings are answered by cache servers where these
/// have the answer; writes, scans, rows, and all else go to the backend. Nothing above can tell, but by the
/// time that it takes. Thread-safe.
class CachedBackend : public Backend {
 public:
  /// of      the backend that has the data.
  /// caches  not null.
  CachedBackend(std::unique_ptr<Backend> of, std::shared_ptr<cached::Caches> caches)
      : of_(std::move(of)), caches_(std::move(caches)) {}

  Capabilities capabilities() const override;
  absl::Status CreateDataset(const DatasetSpec& spec) override { return of_->CreateDataset(spec); }
  absl::Status AlterDataset(const DatasetSpec& spec) override { return of_->AlterDataset(spec); }
  absl::Status NoteSettings(const DatasetSpec& spec) override { return of_->NoteSettings(spec); }
  absl::Status DropDataset(const DatasetSpec& spec) override;
  absl::StatusOr<std::shared_ptr<RowStore>> OpenRows(const DatasetSpec& spec) override {
    return of_->OpenRows(spec);
  }
  absl::StatusOr<std::shared_ptr<ObjectStore>> OpenObjects(const DatasetSpec& spec) override;
  absl::StatusOr<std::shared_ptr<MappingStore>> OpenMappings(const DatasetSpec& spec) override;
  absl::StatusOr<ReclaimResult> Reclaim(const DatasetSpec& spec, const Progress& progress) override {
    return of_->Reclaim(spec, progress);
  }
  absl::StatusOr<DatasetStats> Stats(const DatasetSpec& spec) override { return of_->Stats(spec); }
  absl::Status DropLeftover(const DatasetSpec& spec) override { return of_->DropLeftover(spec); }
  absl::StatusOr<std::unique_ptr<UnitReader>> OpenUnits(const DatasetSpec& spec) override {
    return of_->OpenUnits(spec);
  }
  absl::StatusOr<std::string> StartChanges(const DatasetSpec& spec, ChangesFrom from) override {
    return of_->StartChanges(spec, from);
  }
  absl::StatusOr<UnitChanges> ReadChanges(const DatasetSpec& spec, std::string_view position,
                                          const ChangeLimits& limits) override {
    return of_->ReadChanges(spec, position, limits);
  }
  absl::Status SetConsumer(const DatasetSpec& spec, std::string_view name,
                           std::string_view position) override {
    return of_->SetConsumer(spec, name, position);
  }
  absl::StatusOr<std::vector<UnitConsumer>> ListConsumers(const DatasetSpec& spec) override {
    return of_->ListConsumers(spec);
  }
  absl::Status DropConsumer(const DatasetSpec& spec, std::string_view name) override {
    return of_->DropConsumer(spec, name);
  }
  absl::StatusOr<std::unique_ptr<MigrationEndpoint>> OpenForMigration(const DatasetSpec& spec) override;
  absl::Status CheckWrites() override { return of_->CheckWrites(); }
  void Describe(MetricsSink& sink) const override;

  /// The caches, and the backend behind them, for tests.
  cached::Caches& caches() { return *caches_; }
  Backend& of() { return *of_; }

 private:
  const std::unique_ptr<Backend> of_;
  const std::shared_ptr<cached::Caches> caches_;  // also of the stores that are open
};

}  // namespace kvstore
