#include "kvstore_api/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

namespace kvstore {
namespace {

/// So long one that is not where it should be is looked for.
constexpr std::chrono::seconds kMaxLook{1};

/// How long it waits for operations that end by themselves.
constexpr std::chrono::milliseconds kPatience{2'000};
/// How often long work looks if its operation is still held.
constexpr std::chrono::milliseconds kCheckEvery{200};

absl::Status UnknownDataset(std::string_view name) {
  return absl::NotFoundError(fmt::format("dataset: there is none named '{}'", name));
}

}  // namespace

Router::Router(std::unique_ptr<Catalog> catalog, Backends backends, std::string default_backend,
               std::unique_ptr<Ledger> fleet)
    : catalog_(std::move(catalog)),
      ledger_(catalog_->ledger(), std::move(fleet)),
      backends_(std::move(backends)),
      default_backend_(std::move(default_backend)),
      snapshot_(std::make_shared<const Datasets>()) {}

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
  if (!found.ok()) return found;
  const Dataset& dataset = *found->dataset;
  if (dataset.spec.shape != shape) {
    return absl::FailedPreconditionError(fmt::format("dataset: '{}' holds {}, this call is for {}", name,
                                                     Name(dataset.spec.shape), Name(shape)));
  }
  if (!dataset.problem.ok()) return dataset.problem;
  return found;
}

std::optional<Router::Where> Router::Locate(std::string_view name) const {
  const auto snapshot = snapshot_.Load();
  const auto entry = snapshot->find(name);
  if (entry == snapshot->end()) return std::nullopt;
  const Dataset& dataset = *entry->second;
  return Where{dataset.backend_name, dataset.waits, dataset.spec.durability};
}

Router::Clock::time_point Router::HeldUntil(Clock::time_point since, const absl::Status& moving) {
  return since + (IsGone(moving) ? kMaxLook : kMaxHold);
}

absl::Status Router::Hold(Clock::time_point since, const absl::Status& moving) {
  if (auto status = CheckCall(); !status.ok()) return status;
  const auto now = Clock::now();
  if (now >= HeldUntil(since, moving)) return moving;
  if (!CallScope::Current().waits) {
    LookAgain();
    return moving;
  }
  std::unique_lock lock(follow_mutex_);
  refresh_ = true;
  wanted_.notify_all();
  const uint64_t before = adoptions_;
  adopted_.wait_until(lock, EarlierDeadline(now + kHoldStep),
                      [&] { return stopping_ || adoptions_ != before; });
  return CheckCall();
}

bool Router::AwaitCatalog(std::shared_ptr<const void>& seen) {
  std::unique_lock lock(follow_mutex_);
  if (seen == nullptr) seen = snapshot_.Load();
  return adopted_.wait_for(lock, kHoldStep, [&] {
    const std::shared_ptr<const void> now = snapshot_.Load();
    // Each load has a count of its own.
    return std::exchange(seen, now).get() != now.get();
  });
}

void Router::LookAgain() {
  const std::lock_guard lock(follow_mutex_);
  refresh_ = true;
  wanted_.notify_all();
}

// ---- reading the catalog ----

absl::StatusOr<DatasetSpec> Router::GetDataset(std::string_view name) {
  const auto found = Find(name);
  if (!found.ok()) return found.status();
  return (*found)->spec;
}

absl::StatusOr<std::vector<DatasetSpec>> Router::ListDatasets() {
  const auto snapshot = snapshot_.Load();
  std::vector<DatasetSpec> specs;
  specs.reserve(snapshot->size());
  for (const auto& [name, dataset] : *snapshot) specs.push_back(dataset->spec);
  std::sort(specs.begin(), specs.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return specs;
}

absl::StatusOr<DatasetStats> Router::GetStats(std::string_view name) {
  const auto found = Find(name);
  if (!found.ok()) return found.status();
  if (!(*found)->problem.ok()) return (*found)->problem;
  return (*found)->backend->Stats((*found)->spec);
}

absl::StatusOr<ReclaimResult> Router::Compact(std::string_view name, const Progress& progress) {
  if (const auto known = Find(name); !known.ok()) return known.status();
  const auto held = ledger_.BeginWithin({.what = fmt::format("compact dataset {}", name),
                                         .yields = true,
                                         .claims = {Claim::Dataset(name, ClaimMode::kShared)}},
                                        kPatience);
  if (!held.ok()) return held.status();
  {
    // What is removed is decided by the settings: by those of now.
    const std::lock_guard lock(catalog_mutex_);
    if (const auto contents = Refresh(); !contents.ok()) return contents.status();
  }
  const auto found = Find(name);
  if (!found.ok()) return found.status();
  if (!(*found)->problem.ok()) return (*found)->problem;
  std::atomic<bool> overtaken{false};
  std::atomic<int64_t> looked{0};
  auto result = (*found)->backend->Reclaim((*found)->spec, [&](uint64_t done, uint64_t total) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::milliseconds(1);
    int64_t last = looked;
    if (now - last >= kCheckEvery.count() && looked.compare_exchange_strong(last, now) &&
        absl::IsAborted(held->Check())) {
      overtaken = true;
    }
    return !overtaken && (!progress || progress(done, total));
  });
  if (!overtaken || result.ok()) return result;
  return absl::AbortedError(fmt::format(
      "dataset: '{}' is being dropped or altered by somebody else; the rest was left as it is", name));
}

std::vector<std::string> Router::BackendNames() const {
  std::vector<std::string> names;
  for (const auto& [name, backend] : backends_) names.push_back(name);
  return names;
}

void Router::Describe(MetricsSink& sink) const {
  const auto snapshot = snapshot_.Load();
  const auto broken = std::count_if(snapshot->begin(), snapshot->end(),
                                    [](const auto& entry) { return !entry.second->problem.ok(); });
  sink.Gauge("kvstore_datasets", "Datasets that are known", {}, static_cast<double>(snapshot->size()));
  sink.Gauge("kvstore_datasets_broken", "Datasets that could not be opened: their calls fail", {},
             static_cast<double>(broken));
  catalog_->Describe(sink);
  for (const auto& [name, backend] : backends_) backend->Describe(sink);
}

absl::Status Router::CheckWrites() {
  for (const auto& [name, backend] : backends_) {
    if (auto status = backend->CheckWrites(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace kvstore
