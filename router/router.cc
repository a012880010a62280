#include "router/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "backend_api/end_of_wait.h"

namespace kvstore {
namespace {

/// How long a call waits for a dataset that is not where the catalog says (IsGone).
constexpr std::chrono::seconds kMaxGoneWait{1};

/// How often a compaction checks that its operation is still held.
constexpr std::chrono::milliseconds kCheckEvery{200};

}  // namespace

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
  if (auto status = router->keeper_.Start(contents); !status.ok()) return status;
  return router;
}

// ---- datasets that migrate ----

Router::Clock::time_point Router::MigrationWaitDeadline(Clock::time_point since,
                                                        const absl::Status& migrating) {
  return since + (IsGone(migrating) ? kMaxGoneWait : kMaxMigrationWait);
}

absl::Status Router::WaitForMigration(Clock::time_point since, const absl::Status& migrating) {
  const std::string waited_for(migrating.message());
  if (auto over = CheckCall(); !over.ok()) return EndOfWait(over, waited_for);
  const auto now = Clock::now();
  if (now >= MigrationWaitDeadline(since, migrating)) return migrating;
  if (!CallScope::Current().waits) {
    keeper_.RequestRefresh();
    return migrating;
  }
  keeper_.RefreshAndWait(EarlierDeadline(now + kMigrationRetryInterval));
  const absl::Status over = CheckCall();
  return over.ok() ? over : EndOfWait(over, waited_for);
}

absl::Status Router::AfterWait(const absl::Status& error, const absl::Status& migrating) {
  if (CheckCall().ok() || IsInDoubt(error)) return error;
  return EndOfWait(error, std::string(migrating.message()));
}

// ---- datasets as a whole ----

absl::Status Router::CreateDataset(const DatasetSpec& spec) { return keeper_.CreateDataset(spec); }

absl::Status Router::AlterDataset(std::string_view name, const DatasetChange& change) {
  return keeper_.AlterDataset(name, change);
}

absl::Status Router::DropDataset(std::string_view name, const DropOptions& options) {
  return keeper_.DropDataset(name, options);
}

absl::StatusOr<DatasetSpec> Router::GetDataset(std::string_view name) {
  const auto found = directory().Find(name);
  if (!found.ok()) return found.status();
  // A dataset whose entry in the catalog cannot be read has no settings that could be returned.
  if (!(*found)->problem.ok() && (*found)->spec.backend.empty()) return (*found)->problem;
  return (*found)->spec;
}

absl::StatusOr<std::vector<DatasetSpec>> Router::ListDatasets() { return directory().List(); }

absl::StatusOr<DatasetStats> Router::GetStats(std::string_view name) { return keeper_.GetStats(name); }

absl::StatusOr<ReclaimResult> Router::Compact(std::string_view name, const Progress& progress) {
  if (const auto known = directory().Find(name); !known.ok()) return known.status();
  const auto held = keeper_.ledger().BeginWithin({.what = fmt::format("compact dataset {}", name),
                                                  .yields = true,
                                                  .claims = {Claim::Dataset(name, ClaimMode::kShared)}},
                                                 CatalogKeeper::kMaxOperationWait);
  if (!held.ok()) return held.status();
  // The settings decide which cells are removed, so they must be the current ones.
  if (auto status = keeper_.RefreshNow(); !status.ok()) return status;
  const auto found = directory().Find(name);
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

absl::Status Router::CheckWrites() {
  for (const auto& [name, backend] : keeper_.backends()) {
    if (auto status = backend->CheckWrites(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace kvstore
