#include "kvstore_api/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "idgen/object_id.h"

namespace kvstore {
namespace {

uint64_t RandomIncarnation() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

bool Supports(const Capabilities& capabilities, Shape shape) {
  switch (shape) {
    case Shape::kRows:
      return capabilities.rows;
    case Shape::kObjects:
      return capabilities.objects;
    case Shape::kMappings:
      return capabilities.mappings;
  }
  return false;
}

absl::Status UnknownDataset(std::string_view name) {
  return absl::NotFoundError(fmt::format("dataset: there is none named '{}'", name));
}

}  // namespace

Router::Router(std::unique_ptr<Catalog> catalog, Backends backends, std::string default_backend)
    : catalog_(std::move(catalog)),
      backends_(std::move(backends)),
      default_backend_(std::move(default_backend)),
      snapshot_(std::make_shared<const Datasets>()) {}

absl::StatusOr<std::unique_ptr<Router>> Router::Open(std::unique_ptr<Catalog> catalog, Backends backends,
                                                     std::string default_backend) {
  std::unique_ptr<Router> router(
      new Router(std::move(catalog), std::move(backends), std::move(default_backend)));
  auto entries = router->catalog_->Load();
  if (!entries.ok()) return entries.status();
  for (const CatalogEntry& entry : *entries) {
    if (entry.state != DatasetState::kActive) {
      // Neither was acknowledged as done, or as wanted any more: what is there goes.
      // A host that is down does not keep the rest from opening: the drop is finished at a later start.
      const absl::Status status = router->FinishDrop(entry.spec);
      if (!status.ok() && !absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) return status;
      continue;
    }
    auto dataset = router->OpenDataset(entry.spec);
    if (!dataset.ok()) return dataset.status();
    router->Publish(entry.spec.name, *std::move(dataset));
  }
  return router;
}

// ---- finding ----

absl::StatusOr<Router::Found> Router::Find(std::string_view name) const {
  Found found{snapshot_.Load(), nullptr};
  const auto entry = found.snapshot->find(name);
  if (entry == found.snapshot->end()) return UnknownDataset(name);
  found.dataset = entry->second.get();
  return found;
}

absl::StatusOr<Router::Found> Router::Find(std::string_view name, Shape shape) const {
  auto found = Find(name);
  if (found.ok() && (*found)->spec.shape != shape) {
    return absl::FailedPreconditionError(fmt::format("dataset: '{}' holds {}, this call is for {}", name,
                                                     Name((*found)->spec.shape), Name(shape)));
  }
  return found;
}

absl::StatusOr<Backend*> Router::FindBackend(std::string_view name) const {
  const auto backend = backends_.find(name);
  if (backend != backends_.end()) return backend->second.get();
  std::string known;
  for (const auto& [other, unused] : backends_)
    known += fmt::format("{}'{}'", known.empty() ? "" : ", ", other);
  return absl::InvalidArgumentError(fmt::format("backend: there is none named '{}', only {}", name, known));
}

absl::StatusOr<std::shared_ptr<const Router::Dataset>> Router::OpenDataset(const DatasetSpec& spec) {
  auto backend = FindBackend(spec.backend);
  if (!backend.ok()) return backend.status();
  auto dataset = std::make_shared<Dataset>();
  dataset->spec = spec;
  dataset->backend = *backend;
  const auto keep = [](auto store, auto& place) {
    absl::Status opened = store.status();
    if (opened.ok()) place = *std::move(store);
    return opened;
  };
  absl::Status status;
  switch (spec.shape) {
    case Shape::kRows:
      status = keep((*backend)->OpenRows(spec), dataset->rows);
      break;
    case Shape::kObjects:
      status = keep((*backend)->OpenObjects(spec), dataset->objects);
      break;
    case Shape::kMappings:
      status = keep((*backend)->OpenMappings(spec), dataset->mappings);
      break;
  }
  if (!status.ok()) return status;
  return dataset;
}

void Router::Publish(std::string_view name, std::shared_ptr<const Dataset> dataset) {
  Datasets next = *snapshot_.Load();
  next.insert_or_assign(std::string(name), std::move(dataset));
  snapshot_.Store(std::make_shared<const Datasets>(std::move(next)));
}

void Router::Unpublish(std::string_view name) {
  Datasets next = *snapshot_.Load();
  if (const auto entry = next.find(name); entry != next.end()) next.erase(entry);
  snapshot_.Store(std::make_shared<const Datasets>(std::move(next)));
}

// ---- datasets ----

absl::Status Router::Complete(DatasetSpec& spec) const {
  const auto snapshot = snapshot_.Load();
  if (spec.backend.empty()) spec.backend = default_backend_;
  const auto backend = FindBackend(spec.backend);
  if (!backend.ok()) return backend.status();
  if (!Supports((*backend)->capabilities(), spec.shape)) {
    return absl::InvalidArgumentError(
        fmt::format("shape: backend '{}' does not store {}", spec.backend, Name(spec.shape)));
  }
  if (snapshot->contains(spec.name)) {
    return absl::AlreadyExistsError(fmt::format("dataset: '{}' exists", spec.name));
  }
  if (spec.shape == Shape::kObjects) {
    std::set<uint32_t> taken;
    for (const auto& [name, other] : *snapshot) {
      if (other->spec.shape != Shape::kObjects) continue;
      if (other->spec.type == spec.type) {
        return absl::AlreadyExistsError(
            fmt::format("type: {} is the type number of dataset '{}'", spec.type, name));
      }
      taken.insert(other->spec.type);
    }
    for (uint32_t type = 1; spec.type == 0 && type <= ObjectId::kMaxType; ++type) {
      if (!taken.contains(type)) spec.type = type;
    }
    if (spec.type == 0) return absl::ResourceExhaustedError("type: all 1023 type numbers are taken");
  }
  spec.incarnation = RandomIncarnation();
  return absl::OkStatus();
}

absl::Status Router::CreateDataset(const DatasetSpec& wanted) {
  if (auto status = Validate(wanted); !status.ok()) return status;
  const std::lock_guard lock(catalog_mutex_);
  DatasetSpec spec = wanted;
  if (auto status = Complete(spec); !status.ok()) return status;
  if (auto status = catalog_->Put({spec, DatasetState::kCreating}); !status.ok()) return status;
  const absl::Status created = (*FindBackend(spec.backend))->CreateDataset(spec);
  auto dataset = created.ok() ? OpenDataset(spec) : absl::StatusOr<std::shared_ptr<const Dataset>>(created);
  absl::Status status = dataset.status();
  if (status.ok()) status = catalog_->Put({spec, DatasetState::kActive});
  if (!status.ok()) {
    // If this fails too, the next start finishes it.
    FinishDrop(spec).IgnoreError();
    return status;
  }
  Publish(spec.name, *std::move(dataset));
  return absl::OkStatus();
}

absl::Status Router::AlterDataset(std::string_view name, const DatasetChange& change) {
  const std::lock_guard lock(catalog_mutex_);
  const auto found = Find(name);
  if (!found.ok()) return found.status();
  if (!change.max_versions && !change.ttl_ms && !change.durability) {
    return absl::InvalidArgumentError("alter: give at least one of max_versions, ttl_ms, durability");
  }
  auto changed = std::make_shared<Dataset>(*found->dataset);
  changed->spec = Apply(changed->spec, change);
  if (auto status = Validate(changed->spec); !status.ok()) return status;
  if (auto status = catalog_->Put({changed->spec, DatasetState::kActive}); !status.ok()) return status;
  if (auto status = changed->backend->AlterDataset(changed->spec); !status.ok()) return status;
  Publish(name, std::move(changed));
  return absl::OkStatus();
}

absl::Status Router::DropDataset(std::string_view name) {
  const std::lock_guard lock(catalog_mutex_);
  const auto found = Find(name);
  if (!found.ok()) return found.status();
  if (auto status = catalog_->Put({(*found)->spec, DatasetState::kDropping}); !status.ok()) return status;
  Unpublish(name);
  return FinishDrop((*found)->spec);
}

absl::Status Router::FinishDrop(const DatasetSpec& spec) {
  const auto backend = FindBackend(spec.backend);
  if (!backend.ok()) return backend.status();
  if (auto status = (*backend)->DropDataset(spec); !status.ok()) return status;
  return catalog_->Remove(spec.name);
}

absl::StatusOr<DatasetSpec> Router::GetDataset(std::string_view name) {
  const auto found = Find(name);
  if (!found.ok()) return found.status();
  return (*found)->spec;
}

absl::StatusOr<std::vector<DatasetSpec>> Router::ListDatasets() {
  std::vector<DatasetSpec> specs;
  const auto snapshot = snapshot_.Load();
  for (const auto& [name, dataset] : *snapshot) specs.push_back(dataset->spec);
  std::sort(specs.begin(), specs.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return specs;
}

absl::StatusOr<DatasetStats> Router::GetStats(std::string_view name) {
  const auto found = Find(name);
  if (!found.ok()) return found.status();
  return (*found)->backend->Stats((*found)->spec);
}

absl::StatusOr<ReclaimResult> Router::Compact(std::string_view name, const Progress& progress) {
  const auto found = Find(name);
  if (!found.ok()) return found.status();
  return (*found)->backend->Reclaim((*found)->spec, progress);
}

}  // namespace kvstore
