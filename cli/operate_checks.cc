#include "cli/operate_checks.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "assembly/open_router.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "blobstore/open_blob_store.h"
#include "cli/migrate_status.h"
#include "cli/shard_operator.h"
#include "fleet_backup/pair_backups.h"
#include "json/json_text.h"
#include "kvstore_api/call_scope.h"
#include "migration/migrator.h"
#include "operate/purge_record.h"
#include "shardops/maps.h"

namespace kvstore::cli {
namespace {

using operate::Check;
using operate::Finding;
using Findings = absl::StatusOr<std::vector<Finding>>;

/// A migration whose figures have not changed for this long stands still.
constexpr uint64_t kStandsStillMs = 600'000;
constexpr std::chrono::seconds kMigrationsEvery{30};
/// Backups of pairs are made every day where nothing else is said; two in a row may not fail.
constexpr uint64_t kBackupMaxAgeMs = 2 * 86'400'000ULL;
constexpr std::chrono::hours kBackupsEvery{1};
constexpr std::chrono::minutes kPurgeEvery{1};
constexpr uint64_t kHourMs = 3'600'000;

constexpr char kMigrationPage[] = "migrating.md#when-something-dies";
constexpr char kBackupPage[] = "backup.md#a-fleet-of-mysql-servers";
constexpr char kPurgePage[] = "runbook.md#alarms-of-kv-operate";

/// A store that is opened when it is needed first. Thread-safe.
class LazyStore {
 public:
  explicit LazyStore(OpenOptions options) : options_(std::move(options)) {}

  absl::StatusOr<Router*> Get() {
    const MutexLock lock(mutex_);
    if (router_ == nullptr) {
      auto opened = OpenRouter(options_);
      if (!opened.ok()) return opened.status();
      router_ = *std::move(opened);
    }
    return router_.get();
  }

 private:
  const OpenOptions options_;
  Mutex mutex_;
  std::unique_ptr<Router> router_ ABSL_GUARDED_BY(mutex_);
};

/// Finds migrations that need a person. Used by one thread.
class MigrationCheck {
 public:
  explicit MigrationCheck(std::shared_ptr<LazyStore> store) : store_(std::move(store)) {}

  Findings Find() {
    if (migrator_ == nullptr) {
      const auto router = store_->Get();
      if (!router.ok()) return router.status();
      migrator_ = std::make_unique<Migrator>((*router)->keeper(), /*audit=*/"");
    }
    const auto answer = migrator_->Command({{"command", "list"}});
    if (!answer.ok()) return answer.status();
    std::vector<Finding> findings;
    std::map<std::string, Seen> seen;
    for (const Json& one : answer->at("migrations")) Add(one, findings, seen);
    seen_ = std::move(seen);
    return findings;
  }

 private:
  struct Seen {
    std::string figures;
    uint64_t since_ms = 0;
  };

  void Add(const Json& migration, std::vector<Finding>& findings, std::map<std::string, Seen>& seen) {
    const std::string dataset = migration.value("dataset", "");
    const std::string phase = migration.value("phase", "");
    const auto say = [&](const std::string& text) {
      findings.push_back(
          {dataset, "its migration " + text + ": kv migrate status " + dataset, kMigrationPage});
    };
    if (const std::string problem = migration.value("problem", ""); !problem.empty()) {
      say(fmt::format("has a problem: {}", problem));
    }
    if (const std::string doubt = migration.value("doubt", ""); !doubt.empty()) {
      say(fmt::format("does not know which side is right: {}", doubt));
    }
    const uint64_t now_ms = WallClockMs();
    Seen now{.figures = TextOf(migration), .since_ms = now_ms};
    const auto before = seen_.find(dataset);
    if (before != seen_.end() && before->second.figures == now.figures)
      now.since_ms = before->second.since_ms;
    // One that waits for a person may do so for days.
    if (!WaitsForOperator(migration) && now_ms - now.since_ms > kStandsStillMs) {
      say(fmt::format("stands still in its phase {} for {} minutes", phase,
                      (now_ms - now.since_ms) / 60'000));
    }
    seen.emplace(dataset, std::move(now));
  }

  const std::shared_ptr<LazyStore> store_;
  std::unique_ptr<Migrator> migrator_;
  std::map<std::string, Seen> seen_;
};

/// Finds pairs of which there is no backup that is new enough.
Findings FindOldBackups(const BackupConfig& to, const shardops::FleetOptions& options) {
  const auto newest = fleet_backup::NewestOfPairs([&] { return OpenBlobStore(to.to, to.s3); }, /*at_ms=*/0);
  if (!newest.ok()) return newest.status();
  shardops::FleetSession session(options, /*who=*/"", /*report=*/nullptr);
  const auto maps = shardops::Maps::Load((*session).zookeeper, options.root);
  if (!maps.ok()) return maps.status();
  // Nobody can say of which pair these are, since their manifests cannot be read.
  std::string unreadable;
  for (const fleet_backup::UnreadablePair& pair : newest->unreadable) unreadable += "; " + pair.ToString();
  std::vector<Finding> findings;
  const uint64_t now_ms = WallClockMs();
  for (const shardops::Pair& pair : maps->Pairs()) {
    const std::string name = pair.master.ToString() + "," + pair.slave.ToString();
    const auto has_pair = [&](const fleet_backup::PairBackup& backup) {
      return fleet_backup::HasHost(backup.manifest, pair.master.ToString()) ||
             fleet_backup::HasHost(backup.manifest, pair.slave.ToString());
    };
    // A host may have been in other pairs before, whose backups are still there.
    const fleet_backup::PairBackup* found = nullptr;
    for (const fleet_backup::PairBackup& backup : newest->backups) {
      if (!has_pair(backup)) continue;
      if (found == nullptr || found->manifest.began_ms < backup.manifest.began_ms) found = &backup;
    }
    if (found == nullptr) {
      findings.push_back(
          {name,
           fmt::format("there is no backup of it that can be read: kv backup create --host {}{}",
                       pair.master.ToString(), unreadable),
           kBackupPage});
      continue;
    }
    const uint64_t age_ms = now_ms - std::min(now_ms, found->manifest.began_ms);
    if (age_ms > kBackupMaxAgeMs) {
      findings.push_back(
          {name, fmt::format("its newest backup is {} hours old", age_ms / kHourMs), kBackupPage});
    }
    if (!found->problem.empty()) {
      findings.push_back({name, "a newer backup of it cannot be read: " + found->problem, kBackupPage});
    }
  }
  return findings;
}

/// Purges all datasets that lie on the fleet once a day. Used by one thread.
class PurgeCheck {
 public:
  PurgeCheck(std::shared_ptr<LazyStore> store, shardops::FleetOptions fleet, uint64_t hour)
      : store_(std::move(store)),
        fleet_(std::move(fleet)),
        read_datasets_(fleet_.open_catalog()),
        hour_(hour) {}

  Findings Find(const std::atomic<bool>& active) {
    shardops::FleetSession session(fleet_, /*who=*/"", /*report=*/nullptr);
    ZooKeeper& zookeeper = (*session).zookeeper;
    auto record = operate::LoadPurge(zookeeper, fleet_.root, WallClockMs());
    if (!record.ok()) return record.status();
    if (operate::IsPurgeDue(*record, hour_, WallClockMs())) {
      if (auto status = PurgeAll(active, zookeeper, *record); !status.ok()) return status;
    }
    std::vector<Finding> findings = findings_;
    if (auto backlog = operate::FindBacklog(*record, WallClockMs())) findings.push_back(*std::move(backlog));
    return findings;
  }

 private:
  /// Begins a purge, which fails only if nothing can be purged now: then it is tried again. A dataset that
  /// could not be purged is an alarm until the next day's purge.
  absl::Status PurgeAll(const std::atomic<bool>& active, ZooKeeper& zookeeper, operate::PurgeRecord& record) {
    const auto router = store_->Get();
    if (!router.ok()) return router.status();
    const auto datasets = read_datasets_();
    if (!datasets.ok()) return datasets.status();
    const uint64_t before_ms = record.begun_ms;
    record.begun_ms = WallClockMs();
    if (auto status = operate::SavePurge(zookeeper, fleet_.root, record); !status.ok()) return status;
    findings_.clear();
    for (const DatasetSpec& dataset : *datasets) {
      if (!active) break;
      if (dataset.shape == Shape::kRows) Purge(**router, dataset.name, active);
    }
    // Whoever leads next begins it anew.
    if (!active) record.begun_ms = before_ms;
    if (active && findings_.empty()) record.complete_ms = record.begun_ms;
    return operate::SavePurge(zookeeper, fleet_.root, record);
  }

  void Purge(Router& router, const std::string& dataset, const std::atomic<bool>& active) {
    const auto reclaimed = router.Compact(dataset, [&](uint64_t, uint64_t) { return active.load(); });
    if (reclaimed.ok()) {
      spdlog::info("purge of {}: {} expired and {} surplus cells removed", dataset, reclaimed->expired_cells,
                   reclaimed->surplus_cells);
    } else if (active) {
      findings_.push_back(
          {dataset, "could not be purged: " + std::string(reclaimed.status().message()), kPurgePage});
    }
  }

  const std::shared_ptr<LazyStore> store_;
  const shardops::FleetOptions fleet_;
  const shardops::ReadDatasets read_datasets_;
  const uint64_t hour_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Check> StoreChecks(const Config& config, bool dry_run) {
  const auto store = std::make_shared<LazyStore>(config.store);
  std::vector<Check> checks;
  checks.push_back({.source = "migrations",
                    .every = kMigrationsEvery,
                    .find = [check = std::make_shared<MigrationCheck>(store)](const std::atomic<bool>&) {
                      return check->Find();
                    }});
  if (config.operate.purge_hour < 24 && !dry_run) {
    checks.push_back({.source = "purge",
                      .every = kPurgeEvery,
                      .find = [check = std::make_shared<PurgeCheck>(store, FleetOptionsOf(config.store),
                                                                    config.operate.purge_hour)](
                                  const std::atomic<bool>& active) { return check->Find(active); }});
  }
  if (config.backup) {
    checks.push_back({.source = "backups",
                      .every = kBackupsEvery,
                      .find = [to = *config.backup, fleet = FleetOptionsOf(config.store)](
                                  const std::atomic<bool>&) { return FindOldBackups(to, fleet); }});
  }
  return checks;
}

}  // namespace kvstore::cli
