#include "router/catalog_keeper.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend_api/consumer_metrics.h"
#include "base/advice.h"
#include "base/jitter.h"
#include "router/leftovers.h"

/// How the catalog is followed, and put in force here.
namespace kvstore {
namespace {

/// How long the follower waits after it could not load the catalog.
constexpr std::chrono::seconds kRetryLoad{1};

}  // namespace

// ---- opening and following ----

CatalogKeeper::CatalogKeeper(std::unique_ptr<Catalog> catalog, Backends backends, std::string default_backend,
                             std::unique_ptr<Ledger> fleet)
    : catalog_(std::move(catalog)),
      ledger_(catalog_->ledger(), std::move(fleet)),
      backends_(std::move(backends)),
      default_backend_(std::move(default_backend)) {}

absl::Status CatalogKeeper::Start(const CatalogContents& contents) {
  {
    const DeadlineMutex::Guard catalog_lock = catalog_mutex_.AcquireWithoutDeadline();
    if (auto status = Adopt(contents); !status.ok()) return status;
    if (auto status = FinishAbandoned(contents); !status.ok()) return status;
  }
  if (!catalog_->shared()) return absl::OkStatus();
  catalog_->OnChange([this] { RequestRefresh(); });
  // Changes from before that call were not reported: the follower begins by loading the catalog.
  RequestRefresh();
  follower_ = std::thread([this] { Follow(); });
  return absl::OkStatus();
}

CatalogKeeper::~CatalogKeeper() {
  catalog_->OnChange(nullptr);
  {
    const MutexLock lock(follow_mutex_);
    stopping_ = true;
  }
  wanted_.notify_all();
  adopted_.notify_all();
  if (follower_.joinable()) follower_.join();
}

void CatalogKeeper::Follow() {
  std::chrono::milliseconds wait = catalog_->poll_interval();
  absl::Status last;
  MutexLock lock(follow_mutex_);
  for (;;) {
    const auto until = Clock::now() + wait;
    while (!stopping_ && !refresh_) {
      if (lock.WaitUntil(wanted_, until)) break;
    }
    if (stopping_) return;
    refresh_ = false;
    lock.Unlock();
    absl::Status status;
    {
      const DeadlineMutex::Guard catalog_lock = catalog_mutex_.AcquireWithoutDeadline();
      auto contents = Refresh();
      status = contents.ok() ? FinishAbandoned(*std::move(contents)) : contents.status();
    }
    if (!status.ok() && status != last) {
      spdlog::warn("the catalog cannot be read; known datasets are still served: {}",
                   std::string(status.message()));
    } else if (status.ok() && !last.ok()) {
      spdlog::info("the catalog can be read again");
    }
    last = status;
    ledger_.RetryEnds();
    wait = Jittered(status.ok() ? catalog_->poll_interval() : kRetryLoad);
    lock.Lock();
    unread_ = last;
  }
}

absl::Status CatalogKeeper::RefreshNow() {
  const auto lock = LockCatalog();
  if (!lock.ok()) return lock.status();
  return Refresh().status();
}

void CatalogKeeper::RequestRefresh() {
  const MutexLock lock(follow_mutex_);
  refresh_ = true;
  wanted_.notify_all();
}

void CatalogKeeper::RefreshAndWait(Clock::time_point until) {
  MutexLock lock(follow_mutex_);
  refresh_ = true;
  wanted_.notify_all();
  const uint64_t before = adoptions_;
  while (!stopping_ && adoptions_ == before) {
    if (lock.WaitUntil(adopted_, until)) return;
  }
}

bool CatalogKeeper::WaitForNewCatalog(std::shared_ptr<const void>& seen) {
  const auto until = Clock::now() + kRetryInterval;
  MutexLock lock(follow_mutex_);
  if (seen == nullptr) seen = directory_.Load();
  for (bool timed_out = false;; timed_out = lock.WaitUntil(adopted_, until)) {
    const std::shared_ptr<const void> now = directory_.Load();
    // Compared by address, because each Load may return a pointer with a count of its own.
    if (std::exchange(seen, now).get() != now.get()) return true;
    if (timed_out) return false;
  }
}

absl::StatusOr<DeadlineMutex::Guard> CatalogKeeper::LockCatalog() {
  auto catalog_lock = catalog_mutex_.Acquire("the catalog of datasets");
  if (catalog_lock.ok()) return catalog_lock;
  const MutexLock lock(follow_mutex_);
  if (unread_.ok()) return catalog_lock;
  return absl::Status(
      catalog_lock.status().code(),
      fmt::format("{}; it could not be read when that was last tried: {}",
                  std::string(catalog_lock.status().message()), std::string(unread_.message())));
}

absl::StatusOr<CatalogContents> CatalogKeeper::Refresh() {
  auto contents = catalog_->Load();
  if (!contents.ok()) return contents;
  if (auto status = Adopt(*contents); !status.ok()) return status;
  return contents;
}

absl::Status CatalogKeeper::Adopt(const CatalogContents& contents) {
  const auto current = directory_.Load();
  Datasets next;
  bool changed = false;
  for (const CatalogEntry& entry : contents.entries) {
    const auto known = current->find(entry.spec.name);
    const bool same = known != current->end() && known->second->spec.incarnation == entry.spec.incarnation;
    // A dataset that another process creates, with a part of it here, may be open here already.
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
  std::set<std::string> damaged;
  for (const DamagedEntry& entry : contents.damaged) {
    damaged.insert(entry.name);
    if (!damaged_.contains(entry.name)) spdlog::error("{}", CheckReadable(contents, entry.name).ToString());
    auto dataset = AdoptDamaged(contents, entry.name);
    const auto known = current->find(entry.name);
    changed = changed || known == current->end() || known->second != dataset;
    next.insert_or_assign(entry.name, std::move(dataset));
  }
  damaged_ = std::move(damaged);
  if (changed || next.size() != current->size()) {
    directory_.Replace(std::move(next));
  }
  {
    const MutexLock lock(follow_mutex_);
    ++adoptions_;
  }
  adopted_.notify_all();
  return absl::OkStatus();
}

std::shared_ptr<const ServedDataset> CatalogKeeper::AdoptDamaged(const CatalogContents& contents,
                                                                 const std::string& name) const {
  const auto current = directory_.Load();
  const auto known = current->find(name);
  const absl::Status problem = CheckReadable(contents, name);
  // A damaged entry takes nothing away from those who are served, no more than a catalog that is away.
  if (known != current->end() && (known->second->problem.ok() || known->second->problem == problem)) {
    return known->second;
  }
  auto dataset = std::make_shared<ServedDataset>();
  dataset->spec.name = name;
  dataset->problem = problem;
  return dataset;
}

absl::StatusOr<std::shared_ptr<const ServedDataset>> CatalogKeeper::AdoptDataset(const DatasetSpec& spec) {
  const auto current = directory_.Load();
  const auto known = current->find(spec.name);
  if (known != current->end() && known->second->problem.ok() &&
      known->second->spec.incarnation == spec.incarnation && known->second->spec.backend == spec.backend &&
      known->second->spec.engine == spec.engine) {
    // Only the settings differ. If they cannot be put in force now, the next refresh retries.
    if (auto status = known->second->backend->NoteSettings(spec); !status.ok()) {
      spdlog::warn("dataset '{}': its new settings are not in force here: {}", spec.name,
                   std::string(status.message()));
      return known->second;
    }
    auto dataset = std::make_shared<ServedDataset>(*known->second);
    dataset->spec = spec;
    return dataset;
  }
  auto opened = OpenDataset(spec);
  if (opened.ok() || !catalog_->shared()) return opened;
  const absl::Status problem = opened.status();
  // A dataset that cannot be opened here does not keep the others from being served.
  if (known == current->end() || known->second->problem != problem) {
    spdlog::error("dataset '{}' cannot be opened: {}", spec.name, std::string(problem.message()));
  }
  auto dataset = std::make_shared<ServedDataset>();
  dataset->spec = spec;
  if (const auto backend = backends_.find(spec.backend); backend != backends_.end()) {
    dataset->backend = backend->second.get();
    dataset->backend_name = backend->first;
  }
  // The code tells callers that a retry may succeed, since the problem may be mended without them.
  dataset->problem = absl::Status(
      absl::IsDataLoss(problem) ? absl::StatusCode::kDataLoss : absl::StatusCode::kUnavailable,
      fmt::format("dataset '{}' cannot be opened here: {}", spec.name, std::string(problem.message())));
  if (const auto advice = AdviceOf(problem)) dataset->problem = Advise(dataset->problem, *advice);
  return dataset;
}

absl::Status CatalogKeeper::FinishAbandoned(CatalogContents contents) {
  for (const CatalogEntry& entry : std::vector<CatalogEntry>(contents.entries)) {
    if (!IsAbandoned(entry)) continue;
    // While another entry was finished here, this one may have changed.
    if (std::find(contents.entries.begin(), contents.entries.end(), entry) == contents.entries.end())
      continue;
    if (contents.version < 0 || !backends_.contains(entry.spec.backend)) continue;
    CatalogEntry mine = entry;
    const auto version = TakeOverAbandoned(mine, contents.version);
    if (absl::IsAborted(version.status())) return absl::OkStatus();  // The follower will load the change.
    if (!version.ok()) return version.status();
    absl::Status status = FinishDrop(mine, *version, nullptr);
    auto after = catalog_->Load();
    if (!after.ok()) return after.status();
    contents = *std::move(after);
    if (status.ok()) continue;
    // A host that is down does not keep the other datasets from opening: the drop is finished later.
    if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status) && !catalog_->shared()) {
      return status;
    }
    spdlog::warn("dataset '{}' is dropped later: {}", entry.spec.name, std::string(status.message()));
  }
  return absl::OkStatus();
}

// ---- backends and datasets of this process ----

absl::StatusOr<DatasetStats> CatalogKeeper::GetStats(std::string_view name) const {
  const auto found = directory_.Find(name);
  if (!found.ok()) return found.status();
  if (!(*found)->problem.ok()) return (*found)->problem;
  return (*found)->backend->Stats((*found)->spec);
}

std::vector<std::string> CatalogKeeper::BackendNames() const {
  std::vector<std::string> names;
  for (const auto& [name, backend] : backends_) names.push_back(name);
  return names;
}

absl::StatusOr<Backend*> CatalogKeeper::FindBackend(std::string_view name) const {
  const auto backend = backends_.find(name);
  if (backend != backends_.end()) return backend->second.get();
  std::string known;
  for (const auto& [other, unused] : backends_)
    known += fmt::format("{}'{}'", known.empty() ? "" : ", ", other);
  return absl::InvalidArgumentError(fmt::format(
      "backend: there is none named '{}', only {}; the configuration must name it (docs/configuration.md)",
      name, known));
}

absl::StatusOr<std::shared_ptr<const ServedDataset>> CatalogKeeper::OpenDataset(const DatasetSpec& spec) {
  auto backend = FindBackend(spec.backend);
  if (!backend.ok()) return backend.status();
  auto dataset = std::make_shared<ServedDataset>();
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

absl::Status CatalogKeeper::CreateHere(const DatasetSpec& spec, const Fill& fill) {
  auto backend = FindBackend(spec.backend);
  if (!backend.ok()) return backend.status();
  if (fill) {
    if (auto status = fill(spec, **backend); !status.ok()) return status;
  }
  if (auto status = CreateWithoutLeftovers(**backend, *catalog_, spec); !status.ok()) return status;
  auto dataset = OpenDataset(spec);
  if (!dataset.ok()) return dataset.status();
  directory_.Publish(spec.name, *std::move(dataset));
  return absl::OkStatus();
}

absl::Status CatalogKeeper::DropHere(const DatasetSpec& spec) {
  directory_.Unpublish(spec.name);
  const auto backend = FindBackend(spec.backend);
  if (!backend.ok()) return backend.status();
  return (*backend)->DropDataset(spec);
}

void CatalogKeeper::Describe(MetricsSink& sink) const {
  const auto datasets = directory_.Load();
  const auto broken = std::count_if(datasets->begin(), datasets->end(),
                                    [](const auto& entry) { return !entry.second->problem.ok(); });
  sink.Gauge("kvstore_datasets", "Datasets that are known", {}, static_cast<double>(datasets->size()));
  sink.Gauge("kvstore_datasets_broken", "Datasets that could not be opened: their calls fail", {},
             static_cast<double>(broken));
  catalog_->Describe(sink);
  for (const auto& [name, backend] : backends_) backend->Describe(sink);
  for (const auto& [name, served] : *datasets) {
    // A backend that waits for other machines tells of its consumers itself: nobody waits for figures.
    if (served->spec.keep_changes_ms == 0 || served->backend == nullptr || served->waits) continue;
    const auto consumers = served->backend->ListConsumers(served->spec);
    if (!consumers.ok()) continue;
    DescribeConsumers(sink, name, *consumers);
  }
}

}  // namespace kvstore
