#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "idgen/object_id.h"
#include "kvstore_api/in_doubt.h"
#include "kvstore_api/leftover.h"
#include "kvstore_api/router.h"

/// The router and its catalog: datasets come, change and go.
namespace kvstore {
namespace {

/// A change that loses to others so often fails.
constexpr int kChangeAttempts = 10;
constexpr std::chrono::seconds kRetryLoad{1};

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

const CatalogEntry* FindEntry(const CatalogContents& contents, std::string_view name) {
  const auto entry = std::find_if(contents.entries.begin(), contents.entries.end(),
                                  [&](const CatalogEntry& one) { return one.spec.name == name; });
  return entry == contents.entries.end() ? nullptr : &*entry;
}

/// FAILED_PRECONDITION for a dataset that migrates: its settings are those of both sides.
absl::Status CheckStays(const CatalogEntry& entry) {
  if (entry.other_backend.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "dataset: '{}' migrates between '{}' and '{}', and is not altered or dropped until that is finished or "
      "cancelled; see kv migrate status",
      entry.spec.name, entry.spec.backend, entry.other_backend));
}

/// Makes a change of an entry that is this process' to make, on whichever version the catalog is at by now.
///
/// change  gives the new version for the one it is called with, or ABORTED.
template <typename Change>
absl::Status Settle(Catalog& catalog, int64_t version, const Change& change) {
  for (int attempt = 1;; ++attempt) {
    absl::Status status = change(version).status();
    if (!absl::IsAborted(status) || attempt == kChangeAttempts) return status;
    const auto contents = catalog.Load();
    if (!contents.ok()) return contents.status();
    version = contents->version;
  }
}

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
                                                     std::string default_backend) {
  std::unique_ptr<Router> router(
      new Router(std::move(catalog), std::move(backends), std::move(default_backend)));
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
  for (const CatalogEntry& entry : contents.entries) {
    if (entry.state == DatasetState::kActive) continue;
    // Of this process: under the lock nobody is at it any more.
    if (entry.owner != catalog_->self() && catalog_->IsAlive(entry.owner)) continue;
    if (contents.version < 0 || !backends_.contains(entry.spec.backend)) continue;
    // Neither was acknowledged as done, or as wanted any more: what is there goes. First it is taken over, so
    // that no other process does the same, and the name is not used again meanwhile.
    const auto version =
        catalog_->Put({entry.spec, DatasetState::kDropping, catalog_->self()}, contents.version);
    if (absl::IsAborted(version.status())) return absl::OkStatus();  // the change is heard of
    if (!version.ok()) return version.status();
    absl::Status status = FinishDrop(entry.spec, *version);
    const auto after = catalog_->Load();
    if (!after.ok()) return after.status();
    contents.version = after->version;
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

absl::Status Router::FinishDrop(const DatasetSpec& spec, int64_t version) {
  if (auto status = DropHere(spec); !status.ok()) return status;
  return Settle(*catalog_, version, [&](int64_t at) { return catalog_->Remove(spec.name, at); });
}

// ---- changes ----

absl::Status Router::Complete(DatasetSpec& spec, const CatalogContents& contents) {
  if (spec.backend.empty()) spec.backend = default_backend_;
  const auto backend = FindBackend(spec.backend);
  if (!backend.ok()) return backend.status();
  if (!Supports((*backend)->capabilities(), spec.shape)) {
    return absl::InvalidArgumentError(
        fmt::format("shape: backend '{}' does not store {}", spec.backend, Name(spec.shape)));
  }
  std::set<uint32_t> taken;
  for (const CatalogEntry& entry : contents.entries) {
    const bool going = entry.state == DatasetState::kDropping;
    if (entry.spec.name == spec.name) {
      // The rest of a drop that nobody is at is replaced.
      if (going && (entry.owner == catalog_->self() || !catalog_->IsAlive(entry.owner))) continue;
      return absl::AlreadyExistsError(fmt::format("dataset: '{}' {}", spec.name,
                                                  going ? "is being dropped by another process"
                                                  : entry.state == DatasetState::kCreating
                                                      ? "is being created by another process"
                                                      : "exists"));
    }
    if (spec.shape != Shape::kObjects || entry.spec.shape != Shape::kObjects || going) continue;
    if (entry.spec.type == spec.type) {
      return absl::AlreadyExistsError(
          fmt::format("type: {} is the type number of dataset '{}'", spec.type, entry.spec.name));
    }
    taken.insert(entry.spec.type);
  }
  if (spec.shape == Shape::kObjects) {
    for (uint32_t type = 1; spec.type == 0 && type <= ObjectId::kMaxType; ++type) {
      if (!taken.contains(type)) spec.type = type;
    }
    if (spec.type == 0) return absl::ResourceExhaustedError("type: all 1023 type numbers are taken");
  }
  if (spec.incarnation == 0) spec.incarnation = RandomIncarnation();
  // Who has not heard that another one of the name was dropped must not take this one's tables for it.
  const auto dropped = catalog_->CountDropped(spec.name);
  if (!dropped.ok()) return dropped.status();
  spec.table = *dropped == 0 ? "" : NumberedTable(spec.name, *dropped + 1);
  return Validate(spec);
}

absl::Status Router::CreateDataset(const DatasetSpec& wanted) {
  if (auto status = Validate(wanted); !status.ok()) return status;
  const std::lock_guard lock(catalog_mutex_);
  for (int attempt = 1;; ++attempt) {
    const auto contents = Refresh();
    if (!contents.ok()) return contents.status();
    if (const CatalogEntry* entry = FindEntry(*contents, wanted.name);
        wanted.incarnation != 0 && entry != nullptr && entry->spec.incarnation == wanted.incarnation &&
        entry->state != DatasetState::kDropping) {
      // Done before; or another process that shares the catalog creates it, and this is its part here.
      if (!entry->other_backend.empty()) return absl::OkStatus();
      return CreateHere(entry->spec);
    }
    DatasetSpec spec = wanted;
    if (auto status = Complete(spec, *contents); !status.ok()) return status;
    if (const CatalogEntry* rest = FindEntry(*contents, wanted.name); rest != nullptr) {
      // Of a drop that nobody is at: afterwards nobody would know what is to be removed.
      if (!backends_.contains(rest->spec.backend)) {
        return absl::UnavailableError(fmt::format(
            "dataset: one named '{}' is being dropped, which a process with the backend '{}' must "
            "finish",
            wanted.name, rest->spec.backend));
      }
      if (auto status = DropHere(rest->spec); !status.ok()) return status;
    }
    const auto version = catalog_->Put({spec, DatasetState::kCreating, catalog_->self()}, contents->version);
    if (absl::IsAborted(version.status()) && attempt < kChangeAttempts) continue;
    if (!version.ok()) return version.status();
    absl::Status status = CreateHere(spec);
    if (!status.ok()) {
      // If this fails too, it is finished later.
      FinishDrop(spec, *version).IgnoreError();
      return status;
    }
    status = Settle(*catalog_, *version, [&](int64_t at) {
      return catalog_->Put({spec, DatasetState::kActive}, at);
    });
    if (status.ok()) return status;
    // Where others may see it as created, it stays until the catalog can be read again.
    if (catalog_->shared()) {
      Unpublish(spec.name);
      return MarkInDoubt(status);
    }
    FinishDrop(spec, *version).IgnoreError();
    return status;
  }
}

absl::Status Router::WithCatalog(const std::function<absl::Status(Catalog&)>& work) {
  const std::lock_guard lock(catalog_mutex_);
  return work(*catalog_);
}

absl::StatusOr<CatalogEntry> Router::LoadEntry(std::string_view name) {
  const std::lock_guard lock(catalog_mutex_);
  const auto contents = catalog_->Load();
  if (!contents.ok()) return contents.status();
  const CatalogEntry* entry = FindEntry(*contents, name);
  if (entry != nullptr && entry->state == DatasetState::kActive) return *entry;
  return absl::NotFoundError(fmt::format("dataset: there is none named '{}'", name));
}

absl::Status Router::ChangeEntry(std::string_view name,
                                 const std::function<absl::Status(CatalogEntry&)>& change,
                                 const RecordFence& fence) {
  const std::lock_guard lock(catalog_mutex_);
  for (int attempt = 1;; ++attempt) {
    const auto contents = catalog_->Load();
    if (!contents.ok()) return contents.status();
    const CatalogEntry* found = FindEntry(*contents, name);
    if (found == nullptr || found->state != DatasetState::kActive) {
      return absl::NotFoundError(fmt::format("dataset: there is none named '{}'", name));
    }
    CatalogEntry entry = *found;
    if (auto status = change(entry); !status.ok()) return status;
    if (entry != *found) {
      const auto version = catalog_->Put(entry, contents->version, fence);
      if (absl::IsAborted(version.status()) && attempt < kChangeAttempts) continue;
      if (!version.ok()) return version.status();
    }
    return Refresh().status();
  }
}

absl::Status Router::AlterDataset(std::string_view name, const DatasetChange& change) {
  const std::lock_guard lock(catalog_mutex_);
  for (int attempt = 1;; ++attempt) {
    const auto contents = Refresh();
    if (!contents.ok()) return contents.status();
    const auto found = Find(name);
    if (!found.ok()) return found.status();
    if (!(*found)->problem.ok()) return (*found)->problem;
    if (!change.max_versions && !change.ttl_ms && !change.durability) {
      return absl::InvalidArgumentError("alter: give at least one of max_versions, ttl_ms, durability");
    }
    if (auto status = CheckStays(*FindEntry(*contents, name)); !status.ok()) return status;
    auto changed = std::make_shared<Dataset>(*found->dataset);
    changed->spec = Apply(changed->spec, change);
    if (auto status = Validate(changed->spec); !status.ok()) return status;
    if (changed->spec != (*found)->spec) {
      const auto version = catalog_->Put({changed->spec, DatasetState::kActive}, contents->version);
      if (absl::IsAborted(version.status()) && attempt < kChangeAttempts) continue;
      if (!version.ok()) return version.status();
    }
    // The catalog has them: they come into force, if not now.
    if (auto status = changed->backend->AlterDataset(changed->spec); !status.ok()) return MarkInDoubt(status);
    Publish(name, std::move(changed));
    return absl::OkStatus();
  }
}

absl::Status Router::DropDataset(std::string_view name, const DropOptions& options) {
  const std::lock_guard lock(catalog_mutex_);
  for (int attempt = 1;; ++attempt) {
    const auto contents = Refresh();
    if (!contents.ok()) return contents.status();
    const CatalogEntry* entry = FindEntry(*contents, name);
    if (entry == nullptr || (options.incarnation != 0 && entry->spec.incarnation != options.incarnation)) {
      return absl::NotFoundError(fmt::format("dataset: there is none named '{}'{}", name,
                                             entry != nullptr ? " of that incarnation" : ""));
    }
    if (entry->state != DatasetState::kActive) {
      // Another process that shares the catalog drops it, or undoes its creation, and this is its part here.
      if (options.incarnation != 0) return DropHere(entry->spec);
      if (entry->state == DatasetState::kDropping) {
        return absl::NotFoundError(fmt::format("dataset: there is none named '{}' any more", name));
      }
      return absl::FailedPreconditionError(
          fmt::format("dataset: '{}' is being created by another process", name));
    }
    if (auto status = CheckStays(*entry); !status.ok()) return status;
    const DatasetSpec spec = entry->spec;
    const auto version = catalog_->Put({spec, DatasetState::kDropping, catalog_->self()}, contents->version);
    if (absl::IsAborted(version.status()) && attempt < kChangeAttempts) continue;
    if (!version.ok()) return version.status();
    // From here on it goes, if not now.
    const absl::Status status = FinishDrop(spec, *version);
    return status.ok() ? status : MarkInDoubt(status);
  }
}

}  // namespace kvstore
