#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "kvstore_api/leftover.h"
#include "kvstore_api/router.h"

/// The router and its catalog: what it says is in force here.
namespace kvstore {
namespace {

constexpr std::chrono::seconds kRetryLoad{1};

}  // namespace

// ---- opening and following ----

absl::StatusOr<std::unique_ptr<Router>> Router::Open(std::unique_ptr<Catalog> catalog, Backends backends,
                                                     std::string default_backend) {
  const auto contents = LoadOrCopy(*catalog);
  if (!contents.ok()) return contents.status();
  return Open(std::move(catalog), *contents, std::move(backends), std::move(default_backend));
}

absl::StatusOr<std::unique_ptr<Router>> Router::Open(std::unique_ptr<Catalog> catalog,
                                                     const CatalogContents& contents, Backends backends,
                                                     std::string default_backend,
                                                     std::unique_ptr<Ledger> fleet) {
  std::unique_ptr<Router> router(
      new Router(std::move(catalog), std::move(backends), std::move(default_backend), std::move(fleet)));
  Router* const self = router.get();
  const bool shared = self->catalog_->shared();
  {
    const std::lock_guard lock(self->catalog_mutex_);
    if (auto status = self->Adopt(contents); !status.ok()) return status;
    if (auto status = self->FinishAbandoned(contents); !status.ok()) return status;
  }
  if (!shared) return router;
  self->catalog_->OnChange([self] {
    {
      const std::lock_guard lock(self->follow_mutex_);
      self->refresh_ = true;
    }
    self->wanted_.notify_all();
  });
  // What changed before that call was not heard of.
  self->refresh_ = true;
  self->follower_ = std::thread([self] { self->Follow(); });
  return router;
}

Router::~Router() {
  catalog_->OnChange(nullptr);
  {
    const std::lock_guard lock(follow_mutex_);
    stopping_ = true;
  }
  wanted_.notify_all();
  adopted_.notify_all();
  if (follower_.joinable()) follower_.join();
}

void Router::Follow() {
  std::chrono::milliseconds wait = catalog_->poll_interval();
  absl::Status last;
  std::unique_lock lock(follow_mutex_);
  for (;;) {
    wanted_.wait_for(lock, wait, [this] { return stopping_ || refresh_; });
    if (stopping_) return;
    refresh_ = false;
    lock.unlock();
    absl::Status status;
    {
      const std::lock_guard catalog_lock(catalog_mutex_);
      auto contents = Refresh();
      status = contents.ok() ? FinishAbandoned(*std::move(contents)) : contents.status();
    }
    if (!status.ok() && status != last) {
      spdlog::warn("the catalog cannot be followed, known datasets are served on: {}",
                   std::string(status.message()));
    } else if (status.ok() && !last.ok()) {
      spdlog::info("the catalog is followed again");
    }
    last = status;
    ledger_.Tidy();
    wait = status.ok() ? catalog_->poll_interval() : kRetryLoad;
    lock.lock();
  }
}

absl::StatusOr<CatalogContents> Router::Refresh() {
  auto contents = catalog_->Load();
  if (!contents.ok()) return contents;
  if (auto status = Adopt(*contents); !status.ok()) return status;
  return contents;
}

absl::Status Router::Adopt(const CatalogContents& contents) {
  const auto current = snapshot_.Load();
  Datasets next;
  bool changed = false;
  for (const CatalogEntry& entry : contents.entries) {
    const auto known = current->find(entry.spec.name);
    const bool same = known != current->end() && known->second->spec.incarnation == entry.spec.incarnation;
    // What another process creates with a part of it here is open already.
    if (entry.state != DatasetState::kActive && !(same && entry.state == DatasetState::kCreating)) continue;
    if (same && known->second->problem.ok() &&
        (entry.state == DatasetState::kCreating || known->second->spec == entry.spec)) {
      next.insert(*known);
      continue;
    }
    auto dataset = AdoptDataset(entry.spec);
    if (!dataset.ok()) return dataset.status();
    next.insert_or_assign(entry.spec.name, *std::move(dataset));
    changed = true;
  }
  if (changed || next.size() != current->size()) {
    snapshot_.Store(std::make_shared<const Datasets>(std::move(next)));
  }
  {
    const std::lock_guard lock(follow_mutex_);
    ++adoptions_;
  }
  adopted_.notify_all();
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Router::Dataset>> Router::AdoptDataset(const DatasetSpec& spec) {
  const auto current = snapshot_.Load();
  const auto known = current->find(spec.name);
  if (known != current->end() && known->second->problem.ok() &&
      known->second->spec.incarnation == spec.incarnation && known->second->spec.backend == spec.backend &&
      known->second->spec.engine == spec.engine) {
    // Other settings. If they cannot be put in force now, the next look at the catalog tries again.
    if (auto status = known->second->backend->NoteSettings(spec); !status.ok()) {
      spdlog::warn("dataset '{}': its new settings are not in force here: {}", spec.name,
                   std::string(status.message()));
      return known->second;
    }
    auto dataset = std::make_shared<Dataset>(*known->second);
    dataset->spec = spec;
    return dataset;
  }
  auto opened = OpenDataset(spec);
  if (opened.ok() || !catalog_->shared()) return opened;
  const absl::Status problem = opened.status();
  // One dataset that cannot be served here does not take the others with it.
  if (known == current->end() || known->second->problem != problem) {
    spdlog::error("dataset '{}' cannot be opened: {}", spec.name, std::string(problem.message()));
  }
  auto dataset = std::make_shared<Dataset>();
  dataset->spec = spec;
  if (const auto backend = backends_.find(spec.backend); backend != backends_.end()) {
    dataset->backend = backend->second.get();
    dataset->backend_name = backend->first;
  }
  // Whatever it is, it may be mended without the caller.
  dataset->problem = absl::Status(
      absl::IsDataLoss(problem) ? absl::StatusCode::kDataLoss : absl::StatusCode::kUnavailable,
      fmt::format("dataset '{}' cannot be opened here: {}", spec.name, std::string(problem.message())));
  return dataset;
}

absl::Status Router::FinishAbandoned(CatalogContents contents) {
  for (const CatalogEntry& entry : std::vector<CatalogEntry>(contents.entries)) {
    if (entry.state == DatasetState::kActive) continue;
    // While another one was finished here, somebody may have gone on with this one.
    if (std::find(contents.entries.begin(), contents.entries.end(), entry) == contents.entries.end())
      continue;
    // Of this process: under the lock nobody is at it any more.
    if (entry.owner != catalog_->self() && catalog_->IsAlive(entry.owner)) continue;
    if (contents.version < 0 || !backends_.contains(entry.spec.backend)) continue;
    // Neither was acknowledged as done, or as wanted any more: what is there goes. First it is taken over, so
    // that no other process does the same, and the name is not used again meanwhile.
    const CatalogEntry mine = {entry.spec, DatasetState::kDropping, catalog_->self()};
    const auto version = catalog_->Put(mine, contents.version);
    if (absl::IsAborted(version.status())) return absl::OkStatus();  // the change is heard of
    if (!version.ok()) return version.status();
    absl::Status status = FinishDrop(mine, *version, nullptr);
    auto after = catalog_->Load();
    if (!after.ok()) return after.status();
    contents = *std::move(after);
    if (status.ok()) continue;
    // A host that is down does not keep the rest from opening: the drop is finished at a later time.
    if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status) && !catalog_->shared()) {
      return status;
    }
    spdlog::warn("dataset '{}' is dropped later: {}", entry.spec.name, std::string(status.message()));
  }
  return absl::OkStatus();
}

// ---- datasets here ----

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
  dataset->backend_name = backends_.find(spec.backend)->first;
  dataset->waits = (*backend)->capabilities().waits;
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

absl::Status Router::CreateHere(const DatasetSpec& spec) {
  auto backend = FindBackend(spec.backend);
  if (!backend.ok()) return backend.status();
  if (auto status = CreateWithoutLeftovers(**backend, *catalog_, spec); !status.ok()) return status;
  auto dataset = OpenDataset(spec);
  if (!dataset.ok()) return dataset.status();
  Publish(spec.name, *std::move(dataset));
  return absl::OkStatus();
}

absl::Status Router::DropHere(const DatasetSpec& spec) {
  Unpublish(spec.name);
  const auto backend = FindBackend(spec.backend);
  if (!backend.ok()) return backend.status();
  return (*backend)->DropDataset(spec);
}

}  // namespace kvstore
