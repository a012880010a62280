#include "migration/migrator.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <array>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "kvstore_api/json_fields.h"
#include "kvstore_api/json_text.h"

namespace kvstore {

using migration::CheckCommand;
using migration::Limits;
using migration::Migration;
using migration::Phase;
using migration::Record;
using migration::Wanted;

struct Migrator::Options {
  std::string command;
  std::string dataset;
  std::string who;
  bool dry_run = false;
  // create
  std::string target;
  std::string engine;
  bool automatic = false;
  std::string keep;  // resolve
  std::string gone;  // abandon
  std::optional<uint64_t> threads;
  std::optional<uint64_t> freeze_ms;
  // create, throttle
  std::optional<uint64_t> units_per_s;
  std::optional<uint64_t> bytes_per_s;
  std::optional<uint64_t> share;
  std::optional<uint64_t> max_read_us;

  static absl::StatusOr<Options> Parse(const Json& json) {
    JsonFields fields(json, "");
    Options options{.command = fields.String("command"),
                    .dataset = fields.OptionalString("dataset").value_or(""),
                    .who = fields.OptionalString("who").value_or("unknown"),
                    .dry_run = fields.OptionalBool("dry_run").value_or(false),
                    .target = fields.OptionalString("target").value_or(""),
                    .engine = fields.OptionalString("engine").value_or(""),
                    .automatic = fields.OptionalBool("auto").value_or(false),
                    .keep = fields.OptionalString("keep").value_or(""),
                    .gone = fields.OptionalString("gone").value_or(""),
                    .threads = fields.OptionalUint("threads", 1, 64),
                    .freeze_ms = fields.OptionalUint("freeze_ms", 10, 60'000),
                    .units_per_s = fields.OptionalUint("units_per_s", 0, UINT64_MAX),
                    .bytes_per_s = fields.OptionalUint("bytes_per_s", 0, UINT64_MAX),
                    .share = fields.OptionalUint("share", 1, 100),
                    .max_read_us = fields.OptionalUint("max_read_us", 0, 60'000'000)};
    if (auto status = fields.Finish(); !status.ok()) return status;
    return options;
  }

  Limits Apply(Limits limits) const {
    if (units_per_s) limits.units_per_s = *units_per_s;
    if (bytes_per_s) limits.bytes_per_s = *bytes_per_s;
    if (share) limits.share = static_cast<uint32_t>(*share);
    if (max_read_us) limits.max_read_us = *max_read_us;
    return limits;
  }
};

namespace {

/// How long a migration whose process has died waits for another one.
constexpr std::chrono::seconds kLookEvery{3};

/// Whether a migration can begin with a side that stands so.
absl::Status CheckState(const DatasetSpec& side, const EndpointStatus& status, bool serves) {
  if (serves) {
    if (status.All(EndpointState::kServing)) return absl::OkStatus();
    return absl::FailedPreconditionError(fmt::format(
        "backend: '{}' does not have '{}' serving everywhere; see docs/runbook.md", side.backend, side.name));
  }
  // What is importing or moved there was left by a migration that ended without this side; it is removed
  // first.
  if (!status.Any(EndpointState::kServing) && !status.Any(EndpointState::kFrozen)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("backend: '{}' serves '{}' already, beside the one that the catalog names; see "
                  "docs/runbook.md on hosts that came "
                  "back after they were given up",
                  side.backend, side.name));
}

/// Takes away the record of a migration of an earlier dataset of that name, which nobody could go on with.
absl::Status ForgetOrphan(Catalog& catalog, const DatasetSpec& spec) {
  const auto stored = catalog.GetRecord(spec.name);
  if (absl::IsNotFound(stored.status())) return absl::OkStatus();
  if (!stored.ok()) return stored.status();
  const auto record = migration::Decode(stored->text);
  if (!record.ok() || record->incarnation == spec.incarnation) return absl::OkStatus();
  return catalog.RemoveRecord(spec.name, stored->version);
}

}  // namespace

Migrator::Migrator(Router& router, std::filesystem::path audit) : router_(router), audit_(std::move(audit)) {}

Migrator::~Migrator() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
  if (follower_.joinable()) follower_.join();
  std::map<std::string, std::unique_ptr<Running>, std::less<>> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(running_);
  }
  for (const auto& [dataset, running] : all) running->migration->Stop();
  for (const auto& [dataset, running] : all) running->thread.join();
}

std::shared_ptr<Migration> Migrator::Find(const std::string& dataset) const {
  const std::lock_guard lock(mutex_);
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
  const std::lock_guard lock(audit_mutex_);
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
  absl::StatusOr<Json> result = absl::InvalidArgumentError(
      fmt::format("command: '{}' is none of create, start, status, pause, resume, throttle, verify, cutover, "
                  "reverse, rollback, finish, cancel, resolve, abandon, list",
                  name));
  if (name == "create") {
    result = Create(*options);
  } else if (name == "start" || name == "pause" || name == "resume" || name == "throttle" ||
             name == "verify" || name == "cutover" || name == "reverse" || name == "rollback" ||
             name == "finish" || name == "cancel" || name == "resolve" || name == "abandon") {
    result = Ask(*options);
  }
  if (!options->dry_run) Audit(*options, result.status());
  return result;
}

// ---- commands ----

absl::StatusOr<Json> Migrator::Create(const Options& options) {
  const auto entry = router_.LoadEntry(options.dataset);
  if (!entry.ok()) return entry.status();
  const DatasetSpec& spec = entry->spec;
  if (options.target.empty()) return absl::InvalidArgumentError("target: is missing");
  if (options.target == spec.backend && options.engine == spec.engine) {
    return absl::InvalidArgumentError(fmt::format("target: '{}' is where the dataset is", options.target));
  }
  if (!entry->other_backend.empty()) {
    return absl::AlreadyExistsError(
        fmt::format("dataset: '{}' migrates already; see kv migrate status", spec.name));
  }
  DatasetSpec there = spec;
  there.backend = options.target;
  there.engine = options.engine;
  std::array<const DatasetSpec*, 2> sides = {&spec, &there};
  for (const DatasetSpec* side : sides) {
    const auto backend = router_.FindBackend(side->backend);
    if (!backend.ok()) return backend.status();
    const Capabilities can = (*backend)->capabilities();
    const bool stores = side->shape == Shape::kRows      ? can.rows
                        : side->shape == Shape::kObjects ? can.objects
                                                         : can.mappings;
    if (!can.migration || !stores) {
      return absl::FailedPreconditionError(fmt::format("backend: '{}' takes no part in migrations of {}",
                                                       side->backend, kvstore::Name(side->shape)));
    }
    // Every host answers, and the target has nothing of that name: said before anything has begun.
    const auto endpoint = (*backend)->OpenForMigration(*side);
    if (!endpoint.ok()) return endpoint.status();
    const auto status = (*endpoint)->Status();
    if (!status.ok()) return status.status();
    if (auto fit = CheckState(*side, *status, /*serves=*/side == &spec); !fit.ok()) return fit;
  }
  Record record{.dataset = spec.name,
                .incarnation = spec.incarnation,
                .source = spec.backend,
                .source_engine = spec.engine,
                .target = there.backend,
                .target_engine = there.engine,
                .automatic = options.automatic,
                .limits = options.Apply({})};
  if (options.threads) record.threads = static_cast<uint32_t>(*options.threads);
  if (options.freeze_ms) record.freeze_ms = *options.freeze_ms;
  if (const auto stats = router_.GetStats(spec.name); stats.ok()) {
    record.estimated_units = stats->approximate_entries;
  }
  record.Add(options.who, "created", WallClockMs());
  if (!options.dry_run) {
    Forget(spec.name);
    // From here on nobody alters or drops it, or opens shards of its space; who was at that before is looked
    // for.
    Operation operation = router_.MigrationOf(spec, there);
    operation.who = options.who;
    auto held = router_.ledger().Begin(std::move(operation));
    if (!held.ok()) return held.status();
    const auto now = router_.LoadEntry(spec.name);
    if (!now.ok() || now->spec != spec) {
      if (!held->taken_over()) held->End().IgnoreError();
      return absl::FailedPreconditionError(
          fmt::format("dataset: '{}' was altered or dropped just now; run the command again", spec.name));
    }
    absl::Status status = router_.WithCatalog([&](Catalog& catalog) {
      if (auto forgotten = ForgetOrphan(catalog, spec); !forgotten.ok()) return forgotten;
      return catalog.PutRecord(spec.name, Encode(record), -1).status();
    });
    // In doubt the record may be there.
    if (!status.ok() && !absl::IsUnavailable(status) && !held->taken_over()) held->End().IgnoreError();
    if (absl::IsAborted(status)) {
      return absl::AlreadyExistsError(fmt::format("dataset: '{}' migrates already", spec.name));
    }
    if (!status.ok()) return status;
  }
  return migration::StatusJson(record, std::nullopt);
}

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
  // Who answers is not gone.
  const auto entry = router_.LoadEntry(record.dataset);
  if (!entry.ok()) return entry.status();
  DatasetSpec spec = entry->spec;
  spec.backend = side;
  spec.engine = side == record.source ? record.source_engine : record.target_engine;
  const auto backend = router_.FindBackend(side);
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

absl::StatusOr<Record> Migrator::Look(const std::string& dataset) {
  if (const auto mine = Find(dataset)) return mine->record();
  const auto stored = Migration::Open(router_, dataset);
  if (stored.ok()) return (*stored)->record();
  if (!absl::IsNotFound(stored.status())) return stored.status();
  // Of one that was finished here nothing is stored any more.
  const std::lock_guard lock(mutex_);
  const auto last = running_.find(dataset);
  if (last == running_.end()) return stored.status();
  Record record = last->second->migration->record();
  const bool over = record.phase == Phase::kFinished || record.phase == Phase::kAborted;
  return over ? absl::StatusOr<Record>(std::move(record)) : stored.status();
}

absl::StatusOr<Json> Migrator::Status(const std::string& dataset) {
  const auto record = Look(dataset);
  if (!record.ok()) return record.status();
  const auto mine = Find(dataset);
  return migration::StatusJson(*record, mine ? mine->Lag() : std::nullopt);
}

void Migrator::Forget(const std::string& dataset) {
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(dataset);
  if (found == running_.end() || !found->second->ended) return;
  found->second->thread.join();
  running_.erase(found);
}

absl::StatusOr<std::vector<std::string>> Migrator::Names() {
  std::vector<std::string> names;
  absl::Status status = router_.WithCatalog([&](Catalog& catalog) {
    auto list = catalog.ListRecords();
    if (!list.ok()) return list.status();
    names = *std::move(list);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return names;
}

absl::StatusOr<Json> Migrator::List() {
  const auto names = Names();
  if (!names.ok()) return names.status();
  Json all = Json::array();
  for (const std::string& name : *names) {
    auto one = Status(name);
    if (absl::IsNotFound(one.status())) continue;
    if (!one.ok()) return one.status();
    all.push_back(*std::move(one));
  }
  return Json{{"migrations", std::move(all)}};
}

absl::Status Migrator::Start(const Options& options, bool resume) {
  // A command, and the look after what is abandoned, may both want it.
  const std::lock_guard starting(start_mutex_);
  Forget(options.dataset);
  if (Find(options.dataset)) return absl::OkStatus();
  auto opened = Migration::Open(router_, options.dataset);
  if (!opened.ok()) return opened.status();
  const Record record = (*opened)->record();
  if (!resume) {
    if (auto status = CheckCommand(record, options.command); !status.ok()) return status;
  }
  for (const std::string& side : {record.source, record.target}) {
    const auto backend = router_.FindBackend(side);
    if (!backend.ok()) return backend.status();
  }
  bool elsewhere = false;
  absl::Status status = router_.WithCatalog([&](Catalog& catalog) {
    elsewhere = !record.owner.empty() && record.owner != catalog.self() && catalog.IsAlive(record.owner);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  if (elsewhere) {
    return absl::FailedPreconditionError(fmt::format(
        "dataset: process {} is at the migration of '{}'; ask there, or resume it here when that one "
        "is gone",
        record.owner, record.dataset));
  }
  if (options.dry_run) return absl::OkStatus();
  if (record.phase == Phase::kCreated && options.command == "start") {
    if (status = (*opened)->Begin(options.who); !status.ok()) return status;
  }
  auto running = std::make_unique<Running>();
  running->migration = *std::move(opened);
  Running* const started = running.get();
  const std::lock_guard lock(mutex_);
  // One that ended only now.
  if (const auto ended = running_.find(options.dataset); ended != running_.end()) {
    if (!ended->second->ended) return absl::OkStatus();
    ended->second->thread.join();
    running_.erase(ended);
  }
  running_.emplace(options.dataset, std::move(running));
  started->thread = std::thread([this, started] {
    started->migration->Run().IgnoreError();  // told in the log
    const std::lock_guard ended(mutex_);
    started->ended = true;
  });
  return absl::OkStatus();
}

absl::StatusOr<Json> Migrator::Ask(const Options& options) {
  const std::string& name = options.command;
  // Before it is taken over for nothing.
  const auto record = Look(options.dataset);
  if (!record.ok()) return record.status();
  if (auto status = CheckCommand(*record, name); !status.ok()) return status;
  if (name == "resolve" || name == "abandon") {
    if (auto status = CheckSide(*record, options); !status.ok()) return status;
  }
  if (auto status = Start(options, /*resume=*/name != "start"); !status.ok()) return status;
  if (options.dry_run) return Status(options.dataset);
  const auto mine = Find(options.dataset);
  if (!mine) return Status(options.dataset);
  absl::Status status;
  if (name == "pause" || name == "resume") {
    if (mine->record().paused != (name == "pause")) status = mine->Pause(name == "pause", options.who);
  } else if (name == "throttle") {
    status = mine->SetLimits(options.Apply(mine->record().limits), options.who);
  } else if (name == "verify") {
    status = mine->Ask(Wanted::kVerify, options.who);
  } else if (name == "cutover") {
    status = mine->Ask(Wanted::kCutover, options.who);
  } else if (name == "reverse") {
    status = mine->Ask(Wanted::kReverse, options.who);
  } else if (name == "rollback") {
    status = mine->Ask(Wanted::kRollback, options.who);
  } else if (name == "finish") {
    status = mine->Ask(Wanted::kFinish, options.who);
  } else if (name == "cancel") {
    status = mine->Ask(Wanted::kCancel, options.who);
  } else if (name == "resolve") {
    status = mine->Resolve(options.keep, options.who);
  } else if (name == "abandon") {
    status = mine->Abandon(options.gone, options.who);
  }
  if (!status.ok()) return status;
  return Status(options.dataset);
}

void Migrator::TakeOverAbandoned() {
  follower_ = std::thread([this] {
    absl::Status last;
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      lock.unlock();
      const absl::Status status = ResumeAbandoned();
      if (!status.ok() && status != last) {
        spdlog::warn("migrations are not looked after: {}", std::string(status.message()));
      }
      last = status;
      lock.lock();
      stopped_.wait_for(lock, kLookEvery, [this] { return stopping_; });
    }
  });
}

absl::Status Migrator::ResumeAbandoned() {
  const auto names = Names();
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    Forget(name);
    if (Find(name)) continue;
    const auto stored = Migration::Open(router_, name);
    if (!stored.ok()) return stored.status();
    const Record record = (*stored)->record();
    if (record.phase == Phase::kCreated) continue;
    // Refused while the process that is at it lives, and where a backend is not there.
    if (Start({.command = "resume", .dataset = name}, /*resume=*/true).ok()) {
      spdlog::info("migration of '{}': this process goes on with it", name);
    }
  }
  return absl::OkStatus();
}

void Migrator::Describe(MetricsSink& sink) const {
  std::vector<std::pair<std::string, std::shared_ptr<Migration>>> all;
  {
    const std::lock_guard lock(mutex_);
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
    if (const auto lag = migration->Lag()) {
      sink.Gauge("kvstore_migration_lag_units", "Writes that the copy does not have yet", labels,
                 static_cast<double>(lag->entries));
      sink.Gauge("kvstore_migration_lag_seconds", "Age of the oldest of them", labels,
                 static_cast<double>(lag->oldest_ms) / 1000);
    }
  }
}

}  // namespace kvstore
