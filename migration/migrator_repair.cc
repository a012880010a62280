#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/fail_point.h"
#include "kvstore_api/call_scope.h"
#include "migration/command_options.h"
#include "migration/diagnosis.h"
#include "migration/migrator.h"

/// `kv migrate repair`: asks both sides and the catalog, and carries out what mends the migration.
namespace kvstore {

using migration::Diagnosis;
using migration::Migration;
using migration::Record;
using migration::RepairFacts;
using migration::RepairStep;
using migration::SideFacts;

namespace {

/// How long a repair waits for the answers of one side.
constexpr std::chrono::milliseconds kMaxSideTime{10'000};
/// How long it waits until the worker of this process has ended.
constexpr std::chrono::seconds kMaxStopTime{30};

/// Asks a side what it has. Changes nothing.
///
/// extent  the partitions that the migration covers; empty: all.
SideFacts AskSide(const CatalogKeeper& keeper, const CatalogEntry& entry, const std::string& name,
                  const std::string& engine, const std::string& extent) {
  SideFacts side{.backend = name, .engine = engine};
  // A side that hangs must not keep an operator from what the other one says.
  const CallScope scope(kMaxSideTime);
  DatasetSpec spec = entry.spec;
  spec.backend = name;
  spec.engine = engine;
  const auto ask = [&]() -> absl::Status {
    const auto backend = keeper.FindBackend(name);
    if (!backend.ok()) return backend.status();
    const auto endpoint = (*backend)->OpenForMigration(spec);
    if (!endpoint.ok()) return endpoint.status();
    if (auto limited = (*endpoint)->Limit(extent); !limited.ok()) return limited;
    auto status = (*endpoint)->Status();
    if (!status.ok()) return status.status();
    side.status = *std::move(status);
    auto boot = (*endpoint)->BootId();
    if (!boot.ok()) return boot.status();
    side.boot = *std::move(boot);
    if (!side.status.capture || side.status.Any(EndpointState::kAbsent)) return absl::OkStatus();
    const auto lag = (*endpoint)->Lag();
    if (lag.ok()) side.lag = *lag;
    side.log_problem = lag.status();
    return absl::OkStatus();
  };
  side.problem = ask();
  return side;
}

absl::Status ChangedMeanwhileError(const std::string& dataset) {
  return absl::AbortedError(
      fmt::format("dataset: the record of the migration of '{}' was changed while it was examined, by "
                  "another repair or by a "
                  "worker; look again, by running the command again",
                  dataset));
}

}  // namespace

absl::StatusOr<RepairFacts> Migrator::GatherRepairFacts(const std::string& dataset) {
  for (int attempt = 1;; ++attempt) {
    RepairFacts facts{.dataset = dataset};
    const auto read_record = [&]() -> absl::StatusOr<Record> {
      facts.version = -1;
      if (const auto mine = FindRunning(dataset)) return mine->record();
      const auto stored = Migration::Open(keeper_, dataset);
      if (!stored.ok()) return stored.status();
      facts.version = (*stored)->stored_version();
      return (*stored)->record();
    };
    const auto record = read_record();
    const int64_t version = facts.version;
    facts.record_problem = record.status();
    if (record.ok()) facts.record = *record;
    if (!record.ok() && !absl::IsNotFound(record.status()) && !absl::IsDataLoss(record.status())) {
      return record.status();
    }
    const auto entry = keeper_.LoadEntry(dataset);
    facts.entry_problem = entry.status();
    if (entry.ok()) facts.entry = *entry;
    if (!entry.ok() && !absl::IsNotFound(entry.status()) && !absl::IsDataLoss(entry.status())) {
      return entry.status();
    }
    if (absl::IsNotFound(record.status()) && (!entry.ok() || entry->other_backend.empty())) {
      return absl::NotFoundError(
          fmt::format("dataset: '{0}' does not migrate, and there is nothing to repair; if a create of a "
                      "migration was cut "
                      "short, kv migrate cancel {0} frees what it had claimed",
                      dataset));
    }
    facts.runs_here = FindRunning(dataset) != nullptr;
    absl::Status asked = keeper_.WithCatalog([&](Catalog& catalog) {
      const std::string& owner = facts.record.owner;
      facts.runs_elsewhere = !owner.empty() && owner != catalog.self() && catalog.IsAlive(owner);
      return absl::OkStatus();
    });
    if (!asked.ok()) return asked;
    if (!entry.ok()) return facts;
    if (record.ok()) {
      const Record& now = facts.record;
      facts.source = AskSide(keeper_, *entry, now.source, now.source_engine, now.source_extent);
      facts.target = AskSide(keeper_, *entry, now.target, now.target_engine, now.target_extent);
    } else if (absl::IsNotFound(record.status())) {
      facts.source = AskSide(keeper_, *entry, entry->spec.backend, entry->spec.engine, "");
      facts.target = AskSide(keeper_, *entry, entry->other_backend, entry->other_engine, "");
    }
    Reached("repair.asked");
    // A worker that went on meanwhile would make the sides look as if they did not match the record.
    const auto again = read_record();
    // The diagnosis is of the record as it was read first: a change of anything else, such as a request of an
    // operator, is found when the record is stored.
    facts.version = version;
    const bool same = again.ok() == record.ok() &&
                      (!again.ok() || (again->phase == record->phase && again->epoch == record->epoch &&
                                       again->on_target == record->on_target));
    if (same) return facts;
    if (attempt == 3) {
      return absl::UnavailableError(fmt::format(
          "dataset: the migration of '{}' went on while both sides were asked, three times; nothing was "
          "changed: run the command again",
          dataset));
    }
  }
}

absl::Status Migrator::StopHere(const std::string& dataset) {
  const auto mine = FindRunning(dataset);
  if (!mine) return absl::OkStatus();
  mine->Stop();
  const auto deadline = std::chrono::steady_clock::now() + kMaxStopTime;
  {
    MutexLock lock(mutex_);
    for (auto found = running_.find(dataset); found != running_.end() && !found->second->ended;
         found = running_.find(dataset)) {
      if (!lock.WaitUntil(ended_, deadline)) continue;
      return absl::UnavailableError(fmt::format(
          "dataset: the worker of the migration of '{}' did not stop within {} s; nothing was repaired, "
          "but it was told to stop, and ends as soon as what it waits for answers; then run the command "
          "again",
          dataset, kMaxStopTime.count()));
    }
  }
  ForgetEnded(dataset);
  return absl::OkStatus();
}

absl::Status Migrator::CarryOut(const RepairFacts& facts, const Diagnosis& diagnosis,
                                const Options& options) {
  const std::string& dataset = facts.dataset;
  int64_t version = facts.version;
  if (diagnosis.Has(RepairStep::kRebuildRecord)) {
    Record record = diagnosis.rebuilt;
    record.AddEvent(options.who, "repair: the record was lost, and is made of what both sides have",
                    WallClockMs());
    absl::Status stored = keeper_.WithCatalog([&](Catalog& catalog) {
      const auto put = catalog.PutRecord(dataset, migration::Encode(record), -1);
      if (put.ok()) version = *put;
      return put.status();
    });
    if (absl::IsAborted(stored)) {
      return absl::AbortedError(fmt::format(
          "dataset: the migration of '{0}' has a record again; kv migrate status {0} shows it", dataset));
    }
    if (!stored.ok()) return stored;
  }
  const bool changes = diagnosis.Has(RepairStep::kTurnRecord) || diagnosis.Has(RepairStep::kCompareAgain) ||
                       diagnosis.Has(RepairStep::kRouteCatalog);
  if (!changes) return absl::OkStatus();
  const auto opened = Migration::Open(keeper_, dataset, time_);
  if (!opened.ok()) return opened.status();
  // A repair is not done to another record than the one that was diagnosed.
  if ((*opened)->stored_version() != version) return ChangedMeanwhileError(dataset);
  const absl::Status mended =
      (*opened)->Mend(diagnosis, std::max(facts.source.status.epoch, facts.target.status.epoch), options.who);
  return absl::IsAborted(mended) ? ChangedMeanwhileError(dataset) : mended;
}

absl::StatusOr<Json> Migrator::Repair(const Options& options) {
  const std::string& dataset = options.dataset;
  auto facts = GatherRepairFacts(dataset);
  if (!facts.ok()) return facts.status();
  Diagnosis diagnosis = Diagnose(*facts);
  Json answer = ToJson(*facts, diagnosis);
  answer["done"] = false;
  if (!options.yes || options.dry_run || diagnosis.steps.empty()) return answer;
  const auto elsewhere = [&] {
    return absl::FailedPreconditionError(fmt::format(
        "dataset: process {} runs the migration of '{}': give the command to that process, or end it first",
        facts->record.owner, dataset));
  };
  if (facts->runs_elsewhere) return elsewhere();
  const auto mutex = StartMutexOf(dataset);
  const auto starting = mutex->Acquire("another command that starts or repairs this migration");
  if (!starting.ok()) return starting.status();
  Reached("repair.begun");
  const bool ran = FindRunning(dataset) != nullptr;
  if (auto status = StopHere(dataset); !status.ok()) return status;
  absl::Status status;
  facts = GatherRepairFacts(dataset);
  if (facts.ok() && facts->runs_elsewhere) {
    status = elsewhere();
  } else if (facts.ok()) {
    diagnosis = Diagnose(*facts);
    answer = ToJson(*facts, diagnosis);
    status = CarryOut(*facts, diagnosis, options);
  } else {
    status = facts.status();
  }
  // A worker that was stopped goes on, whether or not it was of use to stop it.
  if (ran || (status.ok() && diagnosis.Has(RepairStep::kResume))) {
    Options resume = options;
    resume.command = "resume";
    status.Update(StartHere(resume, /*resume=*/true));
  }
  if (!status.ok()) return status;
  answer["done"] = true;
  return answer;
}

}  // namespace kvstore
