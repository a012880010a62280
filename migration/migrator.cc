#include "migration/migrator.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "json/json_text.h"
#include "kvstore_api/call_scope.h"
#include "migration/command_options.h"

namespace kvstore {

using migration::CheckCommand;
using migration::Migration;
using migration::Phase;
using migration::Record;
using migration::Wanted;

namespace {

/// How often the process checks for migrations whose process has died.
constexpr std::chrono::seconds kResumeInterval{3};
/// The phase that a list shows for a migration whose record does not decode.
constexpr char kUnreadable[] = "unreadable";

}  // namespace

Migrator::Migrator(CatalogKeeper& keeper, std::filesystem::path audit, migration::ThrottleTime time)
    : keeper_(keeper), audit_(std::move(audit)), time_(std::move(time)) {}

Migrator::~Migrator() { Wait(); }

void Migrator::Stop() {
  const MutexLock lock(mutex_);
  stopping_ = true;
  for (const auto& [dataset, running] : running_) running->migration->Stop();
  stopped_.notify_all();
}

bool Migrator::IsBusy() const {
  return follows_ || std::any_of(running_.begin(), running_.end(),
                                 [](const auto& running) { return !running.second->ended; });
}

void Migrator::Wait(std::chrono::steady_clock::time_point patience) {
  Stop();
  if (patience != std::chrono::steady_clock::time_point::max()) {
    MutexLock lock(mutex_);
    bool patient = true;
    while (IsBusy() && patient) patient = !lock.WaitUntil(ended_, patience);
    cancelled_ = true;
    for (const auto& [dataset, running] : running_) running->migration->Cancel();
  }
  if (follower_.joinable()) follower_.join();
  std::vector<std::thread*> threads;
  {
    // Nobody starts or forgets a migration any more.
    const MutexLock lock(mutex_);
    for (const auto& [dataset, running] : running_) threads.push_back(&running->thread);
  }
  for (std::thread* const thread : threads) {
    if (thread->joinable()) thread->join();
  }
}

std::vector<std::string> Migrator::RunningHere() const {
  std::vector<std::string> datasets;
  const MutexLock lock(mutex_);
  for (const auto& [dataset, running] : running_) {
    if (!running->ended) datasets.push_back(dataset);
  }
  return datasets;
}

std::shared_ptr<Migration> Migrator::FindRunning(const std::string& dataset) const {
  const MutexLock lock(mutex_);
  const auto found = running_.find(dataset);
  return found == running_.end() || found->second->ended ? nullptr : found->second->migration;
}

void Migrator::Audit(const Options& options, const absl::Status& status) {
  if (audit_.empty()) return;
  const Json line = {{"at_ms", WallClockMs()},
                     {"who", options.who},
                     {"command", options.command},
                     {"dataset", options.dataset},
                     {"result", status.ok() ? "OK" : status.ToString()}};
  const MutexLock lock(audit_mutex_);
  std::ofstream out(audit_, std::ios::app);
  out << TextOf(line) << "\n";
  if (!out.flush()) spdlog::warn("the audit log {} cannot be written", audit_.string());
}

absl::StatusOr<Json> Migrator::Command(const Json& command) {
  auto options = Options::Parse(command);
  if (!options.ok()) return options.status();
  const std::string& name = options->command;
  if (name == "list") return List();
  if (options->dataset.empty()) return absl::InvalidArgumentError("dataset: is missing");
  if (name == "status") return Status(options->dataset);
  absl::StatusOr<Json> result = absl::InvalidArgumentError(fmt::format(
      "command: there is none named '{}', only create, start, status, pause, resume, throttle, verify, "
      "cutover, reverse, rollback, finish, cancel, resolve, abandon, repair, list",
      name));
  if (name == "create") {
    result = Create(*options);
  } else if (name == "repair") {
    result = Repair(*options);
    if (!options->yes) return result;
  } else if (name == "start" || name == "pause" || name == "resume" || name == "throttle" ||
             name == "verify" || name == "cutover" || name == "reverse" || name == "rollback" ||
             name == "finish" || name == "cancel" || name == "resolve" || name == "abandon") {
    result = Execute(*options);
  }
  if (!options->dry_run) Audit(*options, result.status());
  return result;
}

// ---- commands ----

absl::Status Migrator::CheckSide(const Record& record, const Options& options) {
  const bool resolves = options.command == "resolve";
  const std::string& side = resolves ? options.keep : options.gone;
  const char* const field = resolves ? "keep" : "gone";
  if (side != record.source && side != record.target) {
    return absl::InvalidArgumentError(
        fmt::format("{}: '{}' is neither '{}' nor '{}', the two sides of this migration", field, side,
                    record.source, record.target));
  }
  if (resolves) return absl::OkStatus();
  if (record.source == record.target) {
    return absl::FailedPreconditionError(
        "gone: both sides are on the same servers; neither can be given up alone");
  }
  const bool truth = side == (record.on_target ? record.target : record.source);
  if (truth && record.verified.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("gone: '{}' has the only whole copy of the data, and is not given up", side));
  }
  if (truth && (record.phase == Phase::kFinishing || record.phase == Phase::kAborting)) {
    return absl::FailedPreconditionError(fmt::format(
        "gone: the other side is being removed already, and '{}' has the only whole copy: bring it back",
        side));
  }
  // A side that answers is not gone.
  const auto entry = keeper_.LoadEntry(record.dataset);
  if (!entry.ok()) return entry.status();
  DatasetSpec spec = entry->spec;
  spec.backend = side;
  spec.engine = side == record.source ? record.source_engine : record.target_engine;
  const auto backend = keeper_.FindBackend(side);
  if (!backend.ok()) return backend.status();
  const auto endpoint = (*backend)->OpenForMigration(spec);
  if (!endpoint.ok()) return absl::OkStatus();
  const std::string& extent = side == record.source ? record.source_extent : record.target_extent;
  if (auto limited = (*endpoint)->Limit(extent); !limited.ok()) return limited;
  if (!(*endpoint)->Status().ok()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("gone: '{}' answers: kv migrate {}", side,
                  truth ? (record.on_target ? "reverse or rollback" : "cutover")
                        : (record.on_target ? "finish" : "cancel")));
}

absl::StatusOr<Record> Migrator::LoadRecord(const std::string& dataset) {
  if (const auto mine = FindRunning(dataset)) return mine->record();
  const auto stored = Migration::Open(keeper_, dataset);
  if (stored.ok()) return (*stored)->record();
  if (!absl::IsNotFound(stored.status())) return stored.status();
  // A migration that has ended here is not stored any more, but this process still knows its last record.
  const MutexLock lock(mutex_);
  const auto last = running_.find(dataset);
  if (last == running_.end()) return stored.status();
  Record record = last->second->migration->record();
  const bool over = record.phase == Phase::kFinished || record.phase == Phase::kAborted;
  return over ? absl::StatusOr<Record>(std::move(record)) : stored.status();
}

absl::StatusOr<Json> Migrator::Status(const std::string& dataset) {
  const auto record = LoadRecord(dataset);
  if (!record.ok()) return record.status();
  const auto mine = FindRunning(dataset);
  return migration::StatusJson(*record, mine ? mine->Lag() : std::nullopt);
}

void Migrator::ForgetEnded(const std::string& dataset) {
  const MutexLock lock(mutex_);
  const auto found = running_.find(dataset);
  if (found == running_.end() || !found->second->ended) return;
  found->second->thread.join();
  running_.erase(found);
}

absl::StatusOr<std::vector<std::string>> Migrator::ListNames() {
  std::vector<std::string> names;
  absl::Status status = keeper_.WithCatalog([&](Catalog& catalog) {
    auto list = catalog.ListRecords();
    if (!list.ok()) return list.status();
    names = *std::move(list);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return names;
}

absl::StatusOr<Json> Migrator::List() {
  const auto names = ListNames();
  if (!names.ok()) return names.status();
  Json all = Json::array();
  for (const std::string& name : *names) {
    auto one = Status(name);
    if (absl::IsNotFound(one.status())) continue;
    if (absl::IsDataLoss(one.status())) {
      // A record that cannot be read does not hide the others.
      all.push_back(
          {{"dataset", name}, {"phase", kUnreadable}, {"problem", std::string(one.status().message())}});
      continue;
    }
    if (!one.ok()) return one.status();
    all.push_back(*std::move(one));
  }
  return Json{{"migrations", std::move(all)}};
}

absl::Status Migrator::Start(const Options& options, bool resume) {
  // A command and ResumeAbandoned may both start the same migration.
  const auto mutex = StartMutexOf(options.dataset);
  const auto starting = mutex->Acquire("another command that starts or repairs this migration");
  if (!starting.ok()) return starting.status();
  return StartHere(options, resume);
}

std::shared_ptr<DeadlineMutex> Migrator::StartMutexOf(const std::string& dataset) {
  const MutexLock lock(mutex_);
  std::erase_if(start_mutexes_, [](const auto& one) { return one.second.expired(); });
  std::weak_ptr<DeadlineMutex>& known = start_mutexes_[dataset];
  auto mutex = known.lock();
  if (mutex == nullptr) {
    mutex = std::make_shared<DeadlineMutex>();
    known = mutex;
  }
  return mutex;
}

absl::Status Migrator::StartHere(const Options& options, bool resume) {
  ForgetEnded(options.dataset);
  if (const auto running = FindRunning(options.dataset)) {
    // A cancel that could not be recorded has left a worker for a migration that was never started.
    const bool starts = options.command == "start" && !options.dry_run;
    return starts && running->record().phase == Phase::kCreated ? running->Begin(options.who)
                                                                : absl::OkStatus();
  }
  auto opened = Migration::Open(keeper_, options.dataset, time_);
  if (!opened.ok()) return opened.status();
  const Record record = (*opened)->record();
  if (!resume) {
    if (auto status = CheckCommand(record, options.command); !status.ok()) return status;
  }
  for (const std::string& side : {record.source, record.target}) {
    const auto backend = keeper_.FindBackend(side);
    if (!backend.ok()) return backend.status();
  }
  bool elsewhere = false;
  absl::Status status = keeper_.WithCatalog([&](Catalog& catalog) {
    elsewhere = !record.owner.empty() && record.owner != catalog.self() && catalog.IsAlive(record.owner);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  if (elsewhere) {
    return absl::FailedPreconditionError(fmt::format(
        "dataset: process {} runs the migration of '{}': give the command to that process, or resume the "
        "migration here when the process is gone",
        record.owner, record.dataset));
  }
  if (options.dry_run) return absl::OkStatus();
  if (record.phase == Phase::kCreated && options.command == "start") {
    if (status = (*opened)->Begin(options.who); !status.ok()) return status;
  }
  auto running = std::make_unique<Running>();
  running->migration = *std::move(opened);
  Running* const started = running.get();
  const MutexLock lock(mutex_);
  if (stopping_)
    return absl::UnavailableError("dataset: this process is about to end, and starts no migration");
  // An earlier thread may have ended since ForgetEnded.
  if (const auto ended = running_.find(options.dataset); ended != running_.end()) {
    if (!ended->second->ended) return absl::OkStatus();
    ended->second->thread.join();
    running_.erase(ended);
  }
  running_.emplace(options.dataset, std::move(running));
  started->thread = std::thread([this, started] {
    started->migration->Run().IgnoreError();  // Run has logged its error.
    const MutexLock ended(mutex_);
    started->ended = true;
    ended_.notify_all();
  });
  return absl::OkStatus();
}

absl::Status Migrator::CancelUnrecorded(const Options& options) {
  const std::string& dataset = options.dataset;
  if (options.dry_run) {
    return absl::NotFoundError(fmt::format("dataset: '{}' does not migrate", dataset));
  }
  // The operation is found by its name, which depends on the dataset's alone.
  const std::string operation = keeper_.MigrationOf({.name = dataset}, {.name = dataset}).what;
  if (auto status = keeper_.ledger().EndLasting(operation); !status.ok()) return status;
  return absl::NotFoundError(fmt::format(
      "dataset: '{}' does not migrate; if a create of a migration was cut short, what it had claimed is free "
      "now",
      dataset));
}

absl::StatusOr<Json> Migrator::Execute(const Options& options) {
  const std::string& name = options.command;
  // Checked before Start takes the migration over, so that a refused command changes nothing.
  const auto record = LoadRecord(options.dataset);
  // This process may still know an earlier migration, which has ended here.
  const bool none = record.ok() ? record->phase == Phase::kFinished || record->phase == Phase::kAborted
                                : absl::IsNotFound(record.status());
  if (name == "cancel" && none) return CancelUnrecorded(options);
  if (!record.ok()) return record.status();
  Record checked = *record;
  if (name == "cutover" && options.accept_differences) checked.shadow.open = 0;
  if (auto status = CheckCommand(checked, name); !status.ok()) return status;
  if (name == "resolve" || name == "abandon") {
    if (auto status = CheckSide(*record, options); !status.ok()) return status;
  }
  if (auto status = Start(options, /*resume=*/name != "start"); !status.ok()) return status;
  if (options.dry_run) return Status(options.dataset);
  const auto mine = FindRunning(options.dataset);
  if (!mine) {
    // Start has recorded a `start` already. Other commands were given to nobody, unless the migration is
    // over.
    const auto last = LoadRecord(options.dataset);
    if (name == "start" || !last.ok() || last->phase == Phase::kFinished || last->phase == Phase::kAborted) {
      return Status(options.dataset);
    }
    return absl::UnavailableError(fmt::format(
        "dataset: the worker of the migration of '{}' ended just now, and {} was not recorded; run "
        "the command again",
        options.dataset, name));
  }
  absl::Status status;
  if (name == "pause" || name == "resume") {
    if (mine->record().paused != (name == "pause")) status = mine->Pause(name == "pause", options.who);
  } else if (name == "throttle") {
    status = mine->SetLimits([&options](const migration::Limits& limits) { return options.Apply(limits); },
                             options.who);
    if (status.ok() && options.shadow_share) {
      status = mine->SetShadowShare(static_cast<uint32_t>(*options.shadow_share), options.who);
    }
  } else if (name == "verify") {
    status = mine->Request(Wanted::kVerify, options.who);
  } else if (name == "cutover") {
    status = options.accept_differences ? mine->RequestCutoverAllTheSame(options.who)
                                        : mine->Request(Wanted::kCutover, options.who);
  } else if (name == "reverse") {
    status = mine->Request(Wanted::kReverse, options.who);
  } else if (name == "rollback") {
    status = mine->Request(Wanted::kRollback, options.who);
  } else if (name == "finish") {
    status = mine->Request(Wanted::kFinish, options.who);
  } else if (name == "cancel") {
    status = mine->Request(Wanted::kCancel, options.who);
  } else if (name == "resolve") {
    status = mine->Resolve(options.keep, options.who);
  } else if (name == "abandon") {
    status = mine->Abandon(options.gone, options.who);
  }
  if (!status.ok()) return status;
  return Status(options.dataset);
}

void Migrator::TakeOverAbandoned() {
  {
    const MutexLock lock(mutex_);
    follows_ = true;
  }
  follower_ = std::thread([this] {
    const CallScope scope(CallLimits{.cancelled = &cancelled_});
    absl::Status last;
    MutexLock lock(mutex_);
    while (!stopping_) {
      lock.Unlock();
      const absl::Status status = ResumeAbandoned();
      if (!status.ok() && status != last) {
        spdlog::warn("migrations whose process has died cannot be resumed now: {}",
                     std::string(status.message()));
      }
      last = status;
      lock.Lock();
      const auto next = std::chrono::steady_clock::now() + kResumeInterval;
      while (!stopping_) {
        if (lock.WaitUntil(stopped_, next)) break;
      }
    }
    follows_ = false;
    ended_.notify_all();
  });
}

absl::Status Migrator::ResumeAbandoned() {
  const auto names = ListNames();
  if (!names.ok()) return names.status();
  absl::Status damaged;
  for (const std::string& name : *names) {
    ForgetEnded(name);
    if (FindRunning(name)) continue;
    const auto stored = Migration::Open(keeper_, name);
    if (absl::IsNotFound(stored.status())) continue;  // It has ended meanwhile.
    if (absl::IsDataLoss(stored.status())) {
      // A record that cannot be read does not keep other migrations from being resumed.
      damaged.Update(stored.status());
      continue;
    }
    if (!stored.ok()) return stored.status();
    const Record record = (*stored)->record();
    if (record.phase == Phase::kCreated) continue;
    // Start refuses while the process that runs the migration lives, and if this one lacks a backend.
    if (Start({.command = "resume", .dataset = name}, /*resume=*/true).ok()) {
      spdlog::info("migration of '{}': this process continues it", name);
    }
  }
  return damaged;
}

void Migrator::Describe(MetricsSink& sink) const {
  std::vector<std::pair<std::string, std::shared_ptr<Migration>>> all;
  {
    const MutexLock lock(mutex_);
    for (const auto& [name, running] : running_) all.emplace_back(name, running->migration);
  }
  for (const auto& [name, migration] : all) {
    const Record record = migration->record();
    const MetricsSink::Labels labels = {
        {"dataset", name}, {"source", record.source}, {"target", record.target}};
    sink.Gauge("kvstore_migration_phase", "0 created, 2 backfill, 3 verify, 4 ready, 5 cutover, 6 reversible",
               labels, static_cast<double>(record.phase));
    sink.Gauge("kvstore_migration_units", "Units that were copied", labels,
               static_cast<double>(record.UnitsDone()));
    sink.Gauge("kvstore_migration_differences", "Units that differed when both sides were compared", labels,
               static_cast<double>(record.differences));
    if (record.shadow.share > 0 || record.shadow.differences > 0) {
      sink.Gauge("kvstore_migration_shadow_units",
                 "Units that callers read, and that were read on both sides", labels,
                 static_cast<double>(record.shadow.compared));
      sink.Gauge("kvstore_migration_shadow_dropped",
                 "Reads that were not made on both sides for want of time", labels,
                 static_cast<double>(record.shadow.dropped));
      sink.Gauge("kvstore_migration_shadow_differences",
                 "Units that differed in such reads although nobody was writing to them", labels,
                 static_cast<double>(record.shadow.differences));
    }
    if (const auto lag = migration->Lag()) {
      sink.Gauge("kvstore_migration_lag_units", "Writes that the copy does not have yet", labels,
                 static_cast<double>(lag->entries));
      sink.Gauge("kvstore_migration_lag_seconds", "Age of the oldest write that the copy does not have yet",
                 labels, static_cast<double>(lag->oldest_ms) / 1000);
    }
  }
}

}  // namespace kvstore
