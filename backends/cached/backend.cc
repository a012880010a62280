#include "backends/cached/backend.h"

#include <utility>

#include "backends/cached/endpoint.h"
#include "backends/cached/stores.h"

namespace kvstore {

using cached::CacheKind;

Capabilities CachedBackend::capabilities() const {
  Capabilities capabilities = of_->capabilities();
  capabilities.waits = true;
  return capabilities;
}

absl::Status CachedBackend::DropDataset(const DatasetSpec& spec) {
  if (auto status = of_->DropDataset(spec); !status.ok()) return status;
  // Whoever has not heard of the drop must not find in a cache what is gone.
  switch (spec.shape) {
    case Shape::kRows:
      return absl::OkStatus();
    case Shape::kObjects:
      return caches_->objects().Leave(spec.incarnation);
    case Shape::kMappings:
      return caches_->mappings().Leave(spec.incarnation);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<ObjectStore>> CachedBackend::OpenObjects(const DatasetSpec& spec) {
  auto of = of_->OpenObjects(spec);
  if (!of.ok()) return of.status();
  return std::make_shared<cached::CachedObjectStore>(
      *std::move(of), std::shared_ptr<cached::Cache>(caches_, &caches_->objects()), spec);
}

absl::StatusOr<std::shared_ptr<MappingStore>> CachedBackend::OpenMappings(const DatasetSpec& spec) {
  auto of = of_->OpenMappings(spec);
  if (!of.ok()) return of.status();
  return std::make_shared<cached::CachedMappingStore>(
      *std::move(of), std::shared_ptr<cached::Cache>(caches_, &caches_->mappings()), spec);
}

absl::StatusOr<std::unique_ptr<MigrationEndpoint>> CachedBackend::OpenForMigration(const DatasetSpec& spec) {
  auto of = of_->OpenForMigration(spec);
  if (!of.ok() || spec.shape == Shape::kRows) return of;
  const CacheKind kind = spec.shape == Shape::kObjects ? CacheKind::kObjects : CacheKind::kMappings;
  return cached::MakeEndpoint(*std::move(of), caches_, kind, spec);
}

void CachedBackend::Describe(MetricsSink& sink) const {
  of_->Describe(sink);
  caches_->objects().Describe(sink);
  caches_->mappings().Describe(sink);
}

}  // namespace kvstore
