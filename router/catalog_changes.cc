#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "backend_api/outcome.h"
#include "base/fail_point.h"
#include "idgen/object_id.h"
#include "kvstore_api/call_scope.h"
#include "router/catalog_keeper.h"
#include "router/leftovers.h"

/// How the router changes the catalog: it creates, alters and drops datasets, and changes entries for
/// migrations.
namespace kvstore {
namespace {

/// How often a change is retried when other processes change the catalog at the same time.
constexpr int kChangeAttempts = 10;
/// How often a change that waits for conflicting operations retries.
constexpr std::chrono::milliseconds kBeginRetryInterval{50};

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

/// FAILED_PRECONDITION for a dataset that migrates, because both sides must keep the same settings.
absl::Status CheckNotMigrating(const CatalogEntry& entry) {
  if (entry.other_backend.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "dataset: '{}' migrates between '{}' and '{}', and is not altered or dropped until that is finished or "
      "cancelled; see kv migrate status",
      entry.spec.name, entry.spec.backend, entry.other_backend));
}

/// OK if the entry is as this process left it; else UNAVAILABLE, in doubt.
absl::Status CheckStillOwned(const CatalogContents& contents, const CatalogEntry& mine) {
  const CatalogEntry* entry = FindEntry(contents, mine.spec.name);
  if (entry != nullptr && entry->spec.incarnation == mine.spec.incarnation && entry->state == mine.state &&
      entry->owner == mine.owner) {
    return absl::OkStatus();
  }
  return MarkInDoubt(absl::UnavailableError(fmt::format(
      "dataset: while '{}' was being {} here, another process took that for abandoned and undid it, or "
      "finished it; this one leaves it alone from now on: look at it with kv dataset show {}",
      mine.spec.name, mine.state == DatasetState::kCreating ? "created" : "dropped", mine.spec.name)));
}

/// INVALID_ARGUMENT if the dataset is to keep changes, and its backend cannot.
absl::Status CheckKeepsChanges(const DatasetSpec& spec, const Capabilities& capabilities) {
  if (spec.keep_changes_ms == 0 || capabilities.changes) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "keep_changes_ms: backend '{}' does not keep changes; only embedded ones and MySQL do, so it must be 0",
      spec.backend));
}

}  // namespace

// ---- operations that conflict ----

namespace {

/// A shared claim on all shards that a dataset of that shape may be on.
Claim AllShards(Claim::Kind kind, Shape shape) {
  return {.kind = kind,
          .mode = ClaimMode::kShared,
          .space = shape == Shape::kRows ? ShardSpace::kMod : ShardSpace::kId,
          .last = Claim::kLastShard};
}

}  // namespace

Operation CatalogKeeper::MigrationOf(const DatasetSpec& source, const DatasetSpec& target) const {
  const std::string& name = source.name;
  Operation operation{
      .what = fmt::format("migrate dataset {}", name),
      .lasting = true,
      .go_on = fmt::format(
          "kv migrate status {} says how far it is; kv migrate finish {} or kv migrate cancel {} ends it",
          name, name, name),
      .claims = {Claim::Dataset(name, ClaimMode::kUpdate)}};
  for (const std::string& side : {source.backend, target.backend}) {
    const auto backend = backends_.find(side);
    if (backend == backends_.end() || !backend->second->capabilities().shards) continue;
    operation.claims.push_back(AllShards(Claim::Kind::kShards, source.shape));
    operation.claims.push_back(AllShards(Claim::Kind::kHomes, source.shape));
    break;
  }
  return operation;
}

absl::Status CatalogKeeper::BeginChange(std::string_view verb, const DatasetSpec& spec,
                                        WaitDeadline& deadline, Held& held) {
  if (!held.id().empty()) return absl::OkStatus();
  Operation operation{.what = fmt::format("{} dataset {}", verb, spec.name),
                      .claims = {Claim::Dataset(spec.name, ClaimMode::kExclusive)}};
  if (const auto backend = backends_.find(spec.backend);
      backend != backends_.end() && backend->second->capabilities().shards) {
    operation.claims.push_back(AllShards(Claim::Kind::kShards, spec.shape));
  }
  auto begun = ledger_.Begin(std::move(operation));
  if (begun.ok()) {
    held = *std::move(begun);
    return absl::OkStatus();
  }
  const auto now = std::chrono::steady_clock::now();
  if (!deadline) deadline = EarlierDeadline(now + kMaxOperationWait);
  // The wait ends while the caller can still be told who is in the way: an attempt without time left would
  // fail for the want of time.
  const bool late = now + 2 * kBeginRetryInterval >= *deadline || !CheckCall().ok();
  if (!EndsByItself(begun.status()) || late) return begun.status();
  std::this_thread::sleep_for(kBeginRetryInterval);
  return absl::AbortedError("another operation is at it");
}

absl::Status CatalogKeeper::CheckNoMigrationRecord(std::string_view name) {
  absl::Status found = catalog_->GetRecord(name).status();
  if (absl::IsNotFound(found)) return absl::OkStatus();
  if (!found.ok()) return found;
  return absl::FailedPreconditionError(fmt::format(
      "dataset: a migration of '{}' has been created, and it is not altered or dropped until that is "
      "finished or cancelled: kv migrate status {}, kv migrate cancel {}",
      name, name, name));
}

absl::Status CatalogKeeper::AdvanceEntry(const CatalogEntry& mine, int64_t version,
                                         const std::function<absl::StatusOr<int64_t>(int64_t)>& change) {
  for (int attempt = 1;; ++attempt) {
    absl::Status status = change(version).status();
    if (!absl::IsAborted(status) || attempt == kChangeAttempts) return status;
    const auto contents = catalog_->Load();
    if (!contents.ok()) return contents.status();
    if (auto readable = CheckReadable(*contents, mine.spec.name); !readable.ok())
      return MarkInDoubt(readable);
    if (status = CheckStillOwned(*contents, mine); !status.ok()) return status;
    version = contents->version;
  }
}

absl::Status CatalogKeeper::FinishDrop(const CatalogEntry& mine, int64_t version, const Held* held) {
  // Even if the rest fails, calls must not find the dataset any more.
  directory_.Unpublish(mine.spec.name);
  // While the operation is held, the session that owns the entry has not ended, and nobody takes the entry
  // over.
  if (held != nullptr) {
    if (auto status = held->Check(); !status.ok()) {
      return MarkInDoubt(absl::UnavailableError(std::string(status.message())));
    }
  }
  if (auto status = DropHere(mine.spec); !status.ok()) return status;
  return AdvanceEntry(mine, version, [&](int64_t at) { return catalog_->Remove(mine.spec.name, at); });
}

// ---- changes ----

absl::Status CatalogKeeper::CompleteSpec(DatasetSpec& spec, const CatalogContents& contents) {
  if (spec.backend.empty()) spec.backend = default_backend_;
  const auto backend = FindBackend(spec.backend);
  if (!backend.ok()) return backend.status();
  if (!Supports((*backend)->capabilities(), spec.shape)) {
    return absl::InvalidArgumentError(
        fmt::format("shape: backend '{}' does not store {}", spec.backend, Name(spec.shape)));
  }
  if (auto status = CheckKeepsChanges(spec, (*backend)->capabilities()); !status.ok()) return status;
  std::set<uint32_t> taken;
  for (const CatalogEntry& entry : contents.entries) {
    const bool going = entry.state == DatasetState::kDropping;
    if (entry.spec.name == spec.name) {
      return absl::AlreadyExistsError(fmt::format("dataset: '{}' {}", spec.name,
                                                  going ? "is being dropped by another process"
                                                  : entry.state == DatasetState::kCreating
                                                      ? "is being created by another process"
                                                      : "exists"));
    }
    if (spec.shape != Shape::kObjects || entry.spec.shape != Shape::kObjects || going) continue;
    if (entry.spec.type == spec.type) {
      // The name of that dataset is not for everybody who may create one.
      return absl::AlreadyExistsError(
          fmt::format("type: {} is the type number of another dataset", spec.type));
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
  // A process that has not heard that an earlier dataset of that name was dropped must not mistake this one's
  // tables for that one's.
  const auto dropped = catalog_->CountDropped(spec.name);
  if (!dropped.ok()) return dropped.status();
  spec.table = *dropped == 0 ? "" : NumberedTable(spec.name, *dropped + 1);
  return Validate(spec);
}

bool CatalogKeeper::IsAbandoned(const CatalogEntry& entry) const {
  if (entry.state == DatasetState::kActive) return false;
  // An entry of this process is abandoned: whoever works on one holds catalog_mutex_.
  return entry.owner == catalog_->self() || !catalog_->IsAlive(entry.owner);
}

absl::StatusOr<int64_t> CatalogKeeper::TakeOverAbandoned(CatalogEntry& entry, int64_t version) {
  // A create was not acknowledged, or a drop was wanted: in both cases the dataset goes.
  entry = {entry.spec, DatasetState::kDropping, catalog_->self()};
  return catalog_->Put(entry, version);
}

absl::Status CatalogKeeper::FinishAbandonedEntry(CatalogEntry entry, int64_t version) {
  const std::string& name = entry.spec.name;
  if (!backends_.contains(entry.spec.backend)) {
    return absl::UnavailableError(fmt::format(
        "dataset: one named '{}' is being dropped, which a process with the backend '{}' must finish", name,
        entry.spec.backend));
  }
  const auto taken = TakeOverAbandoned(entry, version);
  if (!taken.ok()) return taken.status();
  absl::Status status = FinishDrop(entry, *taken, nullptr);
  if (status.ok()) return status;
  return absl::Status(
      status.code(), fmt::format("dataset: what a create or drop of '{}' that was cut short has left must be "
                                 "removed first, and cannot be now: {}",
                                 name, std::string(status.message())));
}

bool CatalogKeeper::CreatesAtOnce(const DatasetSpec& spec, const CatalogContents& contents,
                                  const Fill& fill) const {
  // The first dataset is noted first: data without any catalog is taken for damage.
  if (fill || catalog_->shared() || contents.entries.empty()) return false;
  const auto backend = backends_.find(spec.backend);
  return backend != backends_.end() && backend->second->capabilities().creates_at_once;
}

absl::Status CatalogKeeper::CreateAtOnce(const DatasetSpec& spec, int64_t version) {
  const auto backend = FindBackend(spec.backend);
  if (!backend.ok()) return backend.status();
  if (auto status = CreateWithoutLeftovers(**backend, *catalog_, spec); !status.ok()) return status;
  Reached("create.made");
  auto dataset = OpenDataset(spec);
  absl::Status status = dataset.status();
  if (status.ok()) status = catalog_->Put({spec, DatasetState::kActive}, version).status();
  if (status.ok()) {
    directory_.Publish(spec.name, *std::move(dataset));
    return status;
  }
  // A catalog that names the dataset after all must find its data.
  const auto contents = catalog_->Load();
  if (!contents.ok() || FindEntry(*contents, spec.name) != nullptr) return MarkInDoubt(status);
  (*backend)->DropDataset(spec).IgnoreError();
  return status;
}

absl::Status CatalogKeeper::FinishCreate(const CatalogEntry& mine, int64_t version, const Held& held,
                                         const Fill& fill) {
  const DatasetSpec& spec = mine.spec;
  absl::Status status = CreateHere(spec, fill);
  if (!status.ok()) {
    // If this fails too, the entry is finished as an abandoned one later.
    FinishDrop(mine, version, &held).IgnoreError();
    return status;
  }
  if (status = held.Check(); !status.ok()) {
    // Without the operation, shards may have been opened or moved meanwhile that the dataset is not on.
    const absl::Status undone = FinishDrop(mine, version, catalog_->shared() ? &held : nullptr);
    if (undone.ok()) return absl::UnavailableError(std::string(status.message()));
    return MarkInDoubt(absl::UnavailableError(
        fmt::format("dataset: while '{0}' was being created here, its operation was lost ({1}), and another "
                    "process may have undone it: look at it with kv dataset show {0}",
                    spec.name, std::string(status.message()))));
  }
  status = AdvanceEntry(mine, version, [&](int64_t at) {
    return catalog_->Put({spec, DatasetState::kActive}, at);
  });
  if (status.ok()) return status;
  // If the catalog is shared, other processes may see the dataset as created: it is left alone until the
  // catalog can be read again.
  if (catalog_->shared()) {
    directory_.Unpublish(spec.name);
    return MarkInDoubt(status);
  }
  FinishDrop(mine, version, &held).IgnoreError();
  return status;
}

absl::Status CatalogKeeper::CreateDataset(const DatasetSpec& wanted, const Fill& fill) {
  if (auto status = Validate(wanted); !status.ok()) return status;
  const auto lock = LockCatalog();
  if (!lock.ok()) return lock.status();
  Held held;
  WaitDeadline deadline;
  for (int attempt = 1;;) {
    const auto contents = Refresh();
    if (!contents.ok()) return contents.status();
    const CatalogEntry* const entry = FindEntry(*contents, wanted.name);
    if (entry != nullptr && IsAbandoned(*entry)) {
      absl::Status status = FinishAbandonedEntry(*entry, contents->version);
      if (!status.ok() && (!absl::IsAborted(status) || attempt++ == kChangeAttempts)) return status;
      continue;
    }
    if (wanted.incarnation != 0 && entry != nullptr && entry->spec.incarnation == wanted.incarnation &&
        entry->state != DatasetState::kDropping) {
      // The same create was done before; or another process that shares the catalog creates the dataset, and
      // this is its part here.
      if (!entry->other_backend.empty()) return absl::OkStatus();
      return CreateHere(entry->spec, nullptr);
    }
    // Nobody knows its type number, nor what data it has in the backends.
    if (auto status = CheckAllReadable(
            *contents, "dataset: none can be created, because a type number could be given twice,");
        !status.ok()) {
      return status;
    }
    DatasetSpec spec = wanted;
    if (auto status = CompleteSpec(spec, *contents); !status.ok()) return status;
    if (auto status = BeginChange("create", spec, deadline, held); !status.ok()) {
      if (absl::IsAborted(status)) continue;
      return status;
    }
    if (CreatesAtOnce(spec, *contents, fill)) return CreateAtOnce(spec, contents->version);
    const CatalogEntry mine = {spec, DatasetState::kCreating, catalog_->self()};
    const auto version = catalog_->Put(mine, contents->version);
    if (absl::IsAborted(version.status()) && attempt++ < kChangeAttempts) continue;
    if (!version.ok()) return version.status();
    return FinishCreate(mine, *version, held, fill);
  }
}

absl::Status CatalogKeeper::WithCatalog(const std::function<absl::Status(Catalog&)>& work) {
  const auto lock = LockCatalog();
  if (!lock.ok()) return lock.status();
  return work(*catalog_);
}

absl::StatusOr<CatalogEntry> CatalogKeeper::LoadEntry(std::string_view name) {
  const auto lock = LockCatalog();
  if (!lock.ok()) return lock.status();
  const auto contents = catalog_->Load();
  if (!contents.ok()) return contents.status();
  const CatalogEntry* entry = FindEntry(*contents, name);
  if (entry != nullptr && entry->state == DatasetState::kActive) return *entry;
  // A dataset that is not known must not be taken for one that was dropped.
  if (auto status = CheckReadable(*contents, name); !status.ok()) return status;
  return absl::NotFoundError(fmt::format("dataset: there is none named '{}'", name));
}

absl::Status CatalogKeeper::ChangeEntry(std::string_view name,
                                        const std::function<absl::Status(CatalogEntry&)>& change,
                                        const RecordFence& fence) {
  const auto lock = LockCatalog();
  if (!lock.ok()) return lock.status();
  for (int attempt = 1;; ++attempt) {
    const auto contents = catalog_->Load();
    if (!contents.ok()) return contents.status();
    if (auto status = CheckReadable(*contents, name); !status.ok()) return status;
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

absl::Status CatalogKeeper::AlterDataset(std::string_view name, const DatasetChange& change) {
  const auto lock = LockCatalog();
  if (!lock.ok()) return lock.status();
  Held held;
  WaitDeadline deadline;
  for (int attempt = 1;;) {
    const auto contents = Refresh();
    if (!contents.ok()) return contents.status();
    if (auto status = CheckReadable(*contents, name); !status.ok()) return status;
    const auto found = directory_.Find(name);
    if (!found.ok()) return found.status();
    if (!(*found)->problem.ok()) return (*found)->problem;
    if (change == DatasetChange()) {
      return absl::InvalidArgumentError(
          "alter: give at least one of max_versions, ttl_ms, durability, keep_changes_ms");
    }
    if (auto status = CheckNotMigrating(*FindEntry(*contents, name)); !status.ok()) return status;
    auto changed = std::make_shared<ServedDataset>(*found->dataset);
    // Not from the settings in force here: those that another process has changed may not be in force here
    // yet, and must not be taken back.
    const DatasetSpec& before = FindEntry(*contents, name)->spec;
    changed->spec = Apply(before, change);
    if (auto status = Validate(changed->spec); !status.ok()) return status;
    // Another process may see another backend in front of the one that keeps them.
    if (change.keep_changes_ms) {
      if (auto status = CheckKeepsChanges(changed->spec, changed->backend->capabilities()); !status.ok())
        return status;
    }
    if (changed->spec != before) {
      if (auto status = BeginChange("alter", changed->spec, deadline, held); !status.ok()) {
        if (absl::IsAborted(status)) continue;
        return status;
      }
      if (auto status = CheckNoMigrationRecord(name); !status.ok()) return status;
      const auto version = catalog_->Put({changed->spec, DatasetState::kActive}, contents->version);
      if (absl::IsAborted(version.status()) && attempt++ < kChangeAttempts) continue;
      if (!version.ok()) return version.status();
    }
    // The catalog has the new settings: if they cannot be put in force now, they will be later.
    if (auto status = changed->backend->AlterDataset(changed->spec); !status.ok()) return MarkInDoubt(status);
    directory_.Publish(name, std::move(changed));
    return absl::OkStatus();
  }
}

absl::Status CatalogKeeper::DropDataset(std::string_view name, const DropOptions& options) {
  const auto lock = LockCatalog();
  if (!lock.ok()) return lock.status();
  Held held;
  WaitDeadline deadline;
  for (int attempt = 1;;) {
    const auto contents = Refresh();
    if (!contents.ok()) return contents.status();
    if (auto status = CheckReadable(*contents, name); !status.ok()) return status;
    const CatalogEntry* entry = FindEntry(*contents, name);
    if (entry == nullptr || (options.incarnation != 0 && entry->spec.incarnation != options.incarnation)) {
      return absl::NotFoundError(fmt::format("dataset: there is none named '{}'{}", name,
                                             entry != nullptr ? " of that incarnation" : ""));
    }
    if (IsAbandoned(*entry)) {
      const absl::Status status = FinishAbandonedEntry(*entry, contents->version);
      if (absl::IsAborted(status) && attempt++ < kChangeAttempts) continue;
      return status.ok() ? status : MarkInDoubt(status);
    }
    if (entry->state != DatasetState::kActive) {
      // Another process that shares the catalog drops the dataset, or undoes its creation, and this is its
      // part here.
      if (options.incarnation != 0) return DropHere(entry->spec);
      if (entry->state == DatasetState::kDropping) {
        return absl::NotFoundError(fmt::format("dataset: there is none named '{}' any more", name));
      }
      return absl::FailedPreconditionError(
          fmt::format("dataset: '{}' is being created by another process", name));
    }
    if (auto status = CheckNotMigrating(*entry); !status.ok()) return status;
    if (auto status = BeginChange("drop", entry->spec, deadline, held); !status.ok()) {
      if (absl::IsAborted(status)) continue;
      return status;
    }
    if (auto status = CheckNoMigrationRecord(name); !status.ok()) return status;
    const CatalogEntry mine = {entry->spec, DatasetState::kDropping, catalog_->self()};
    const auto version = catalog_->Put(mine, contents->version);
    if (absl::IsAborted(version.status()) && attempt++ < kChangeAttempts) continue;
    if (!version.ok()) return version.status();
    // From here on the dataset will be dropped, even if that fails now.
    const absl::Status status = FinishDrop(mine, *version, &held);
    return status.ok() ? status : MarkInDoubt(status);
  }
}

}  // namespace kvstore
