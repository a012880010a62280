#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "backend_api/backend.h"
#include "backend_api/migration_endpoint.h"

namespace kvstore::testing {

/// Wraps an endpoint, to plant mistakes in it.
using Wrap = std::function<std::unique_ptr<MigrationEndpoint>(std::unique_ptr<MigrationEndpoint>)>;

/// A backend whose endpoints are wrapped. Several of these may share the inner backend.
class WrappedBackend : public Backend {
 public:
  WrappedBackend(std::shared_ptr<Backend> inner, Wrap wrap)
      : inner_(std::move(inner)), wrap_(std::move(wrap)) {}
  Capabilities capabilities() const override { return inner_->capabilities(); }
  absl::Status CreateDataset(const DatasetSpec& spec) override { return inner_->CreateDataset(spec); }
  absl::Status AlterDataset(const DatasetSpec& spec) override { return inner_->AlterDataset(spec); }
  absl::Status DropDataset(const DatasetSpec& spec) override { return inner_->DropDataset(spec); }
  absl::StatusOr<std::shared_ptr<RowStore>> OpenRows(const DatasetSpec& spec) override {
    return inner_->OpenRows(spec);
  }
  absl::StatusOr<std::shared_ptr<ObjectStore>> OpenObjects(const DatasetSpec& spec) override {
    return inner_->OpenObjects(spec);
  }
  absl::StatusOr<std::shared_ptr<MappingStore>> OpenMappings(const DatasetSpec& spec) override {
    return inner_->OpenMappings(spec);
  }
  absl::StatusOr<ReclaimResult> Reclaim(const DatasetSpec& spec, const Progress& progress) override {
    return inner_->Reclaim(spec, progress);
  }
  absl::StatusOr<DatasetStats> Stats(const DatasetSpec& spec) override { return inner_->Stats(spec); }
  absl::StatusOr<std::unique_ptr<MigrationEndpoint>> OpenForMigration(const DatasetSpec& spec) override {
    auto endpoint = inner_->OpenForMigration(spec);
    if (!endpoint.ok() || !wrap_) return endpoint;
    return wrap_(*std::move(endpoint));
  }
  void Describe(MetricsSink& sink) const override { inner_->Describe(sink); }

 private:
  const std::shared_ptr<Backend> inner_;
  const Wrap wrap_;
};

}  // namespace kvstore::testing
