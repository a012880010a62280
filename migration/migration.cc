#include "migration/migration.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/fail_point.h"

namespace kvstore::migration {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRetry{500};
constexpr milliseconds kLook{50};

std::string Text(const absl::Status& status) { return std::string(status.message()); }

}  // namespace

absl::StatusOr<std::unique_ptr<Migration>> Migration::Open(Router& router, std::string_view dataset) {
  CatalogRecord stored;
  absl::Status status = router.WithCatalog([&](Catalog& catalog) {
    auto found = catalog.GetRecord(dataset);
    if (!found.ok()) return found.status();
    stored = *std::move(found);
    return absl::OkStatus();
  });
  if (absl::IsNotFound(status)) {
    return absl::NotFoundError(fmt::format("dataset: '{}' does not migrate", dataset));
  }
  if (!status.ok()) return status;
  auto record = Decode(stored.text);
  if (!record.ok()) return record.status();
  return std::unique_ptr<Migration>(new Migration(router, *std::move(record), stored.version));
}

Migration::Migration(Router& router, Record record, int64_t version)
    : router_(router),
      names_(record),
      record_(std::move(record)),
      version_(version),
      throttle_(names_.limits),
      on_target_(names_.on_target),
      fresh_(names_.phase == Phase::kCreated || names_.phase == Phase::kPrepare) {}

// ---- the record ----

Record Migration::record() const {
  const std::lock_guard lock(mutex_);
  Record record = record_;
  if (copier_) record.drained_units += copier_->drained();
  if (const Verifier* const verifier = verifier_.load()) record.compared_units = verifier->compared();
  return record;
}

std::optional<DirtyLag> Migration::Lag() const {
  std::shared_ptr<MigrationEndpoint> endpoint;
  {
    const std::lock_guard lock(mutex_);
    if (!source_ || !target_) return std::nullopt;
    if (record_.phase == Phase::kFinished || record_.phase == Phase::kAborted) return std::nullopt;
    endpoint = record_.on_target ? target_ : source_;
  }
  auto lag = endpoint->Lag();
  return lag.ok() ? std::optional(*lag) : std::nullopt;
}

absl::Status Migration::Save() {
  const std::string text = Encode(record_);
  const auto put = [&](Catalog& catalog) {
    const auto version = catalog.PutRecord(record_.dataset, text, version_);
    if (version.ok()) version_ = *version;
    return version.status();
  };
  absl::Status status = router_.WithCatalog(put);
  if (!absl::IsUnavailable(status) && !absl::IsAborted(status)) return status;
  // It, or one before it whose answer was lost, may have been written: then what is there is of this worker.
  bool written = false;
  absl::Status looked = router_.WithCatalog([&](Catalog& catalog) -> absl::Status {
    const auto stored = catalog.GetRecord(record_.dataset);
    if (!stored.ok()) return stored.status();
    written = stored->text == text;
    const auto there = Decode(stored->text);
    const bool mine =
        there.ok() && there->owner == catalog.self() && there->incarnation == record_.incarnation;
    if (!written && !mine) return status;
    version_ = stored->version;
    return absl::OkStatus();
  });
  if (absl::IsNotFound(looked)) return absl::AbortedError("another worker has ended the migration");
  if (!looked.ok() || written) return looked;
  return router_.WithCatalog(put);
}

absl::Status Migration::Change(const std::function<void(Record&)>& change, std::string event,
                               std::string who) {
  const std::lock_guard lock(mutex_);
  const Record before = record_;
  change(record_);
  if (!event.empty()) {
    spdlog::info("migration of '{}': {} ({})", record_.dataset, event, who);
    record_.Add(std::move(who), std::move(event), WallClockMs());
  }
  absl::Status status = Save();
  if (!status.ok()) record_ = before;
  return status;
}

void Migration::Checkpoint() {
  const std::lock_guard lock(mutex_);
  // What is not written down is copied again.
  Save().IgnoreError();
}

absl::Status Migration::Enter(Phase phase, std::string event) {
  return Change(
      [phase](Record& record) {
        record.phase = phase;
        record.problem.clear();
      },
      std::move(event));
}

absl::Status Migration::ChangeEntry(const std::function<void(CatalogEntry&)>& change) {
  absl::Status status = router_.ChangeEntry(names_.dataset, [&](CatalogEntry& entry) -> absl::Status {
    if (entry.spec.incarnation != names_.incarnation) {
      return absl::FailedPreconditionError("dataset: is another one of the same name");
    }
    change(entry);
    return absl::OkStatus();
  });
  // That others change the catalog too says nothing about this migration's worker.
  return absl::IsAborted(status) ? absl::UnavailableError(status.message()) : status;
}

// ---- what is asked ----

void Migration::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  asked_.notify_all();
}

void Migration::Wait(milliseconds time) {
  std::unique_lock lock(mutex_);
  asked_.wait_for(lock, time, [this] { return stop_.load() || record_.wanted != Wanted::kNothing; });
}

absl::Status Migration::Ask(Wanted wanted, std::string who) {
  absl::Status status = Change([wanted](Record& record) { record.wanted = wanted; },
                               std::string(Name(wanted)) + " asked for", std::move(who));
  asked_.notify_all();
  return status;
}

absl::Status Migration::Pause(bool paused, std::string who) {
  return Change([paused](Record& record) { record.paused = paused; }, paused ? "paused" : "resumed",
                std::move(who));
}

absl::Status Migration::SetLimits(const Limits& limits, std::string who) {
  absl::Status status =
      Change([&](Record& record) { record.limits = limits; },
             fmt::format("limits: {} units/s, {} bytes/s, {} % of the time, reads of {} us",
                         limits.units_per_s, limits.bytes_per_s, limits.share, limits.max_read_us),
             std::move(who));
  if (status.ok()) throttle_.Set(limits);
  return status;
}

absl::Status Migration::Begin(std::string who) {
  return Change([](Record& record) { record.phase = Phase::kPrepare; }, "started", std::move(who));
}

// ---- running ----

absl::Status Migration::TakeOver() {
  drainer_.reset();
  const auto entry = router_.LoadEntry(names_.dataset);
  if (!entry.ok()) return entry.status();
  if (entry->spec.incarnation != names_.incarnation) {
    return absl::NotFoundError("dataset: is another one of the same name");
  }
  DatasetSpec source = entry->spec;
  source.backend = names_.source;
  source.engine = names_.source_engine;
  DatasetSpec target = entry->spec;
  target.backend = names_.target;
  target.engine = names_.target_engine;
  const auto open = [&](const DatasetSpec& spec) -> absl::StatusOr<std::unique_ptr<MigrationEndpoint>> {
    const auto backend = router_.FindBackend(spec.backend);
    if (!backend.ok()) return backend.status();
    return (*backend)->OpenForMigration(spec);
  };
  auto opened_source = open(source);
  if (!opened_source.ok()) return opened_source.status();
  auto opened_target = open(target);
  if (!opened_target.ok()) return opened_target.status();
  // First the record: a worker that lives would lose it here.
  const auto source_status = (*opened_source)->Status();
  if (!source_status.ok()) return source_status.status();
  const auto target_status = (*opened_target)->Status();
  if (!target_status.ok()) return target_status.status();
  const uint64_t epoch =
      std::max({record().epoch, source_status->epoch, target_status->epoch, WallClockMs()}) + 1;
  std::string self;
  router_
      .WithCatalog([&](Catalog& catalog) {
        self = catalog.self();
        return absl::OkStatus();
      })
      .IgnoreError();
  if (auto status = Change([&](Record& record) {
        record.epoch = epoch;
        record.owner = self;
      });
      !status.ok()) {
    return status;
  }
  Reached("takeover.recorded");
  epoch_ = epoch;
  auto boots = Boots(**opened_source, **opened_target);
  if (!boots.ok()) return boots.status();
  boots_ = *std::move(boots);
  if (auto status = (*opened_source)->RaiseEpoch(epoch); !status.ok()) return status;
  Reached("takeover.half");
  if (auto status = (*opened_target)->RaiseEpoch(epoch); !status.ok()) return status;
  const std::lock_guard lock(mutex_);
  if (copier_) record_.drained_units += copier_->drained();
  copier_.reset();
  source_ = *std::move(opened_source);
  target_ = *std::move(opened_target);
  return absl::OkStatus();
}

absl::Status Migration::Run() {
  bool taken = false;
  while (!stopping()) {
    {
      const std::lock_guard lock(mutex_);
      if (record_.phase == Phase::kFinished || record_.phase == Phase::kAborted) return absl::OkStatus();
    }
    absl::Status status = taken ? absl::OkStatus() : TakeOver();
    if (status.ok()) {
      taken = true;
      status = RunPhase();
    }
    if (status.ok()) continue;
    drainer_.reset();
    if (absl::IsAborted(status)) {
      spdlog::warn("migration of '{}': {}", names_.dataset, Text(status));
      return status;
    }
    if (stopping()) break;
    // A write to the other side may still be under way: the next attempt has an epoch of its own.
    taken = false;
    fresh_ = false;
    bool told = false;
    {
      const std::lock_guard lock(mutex_);
      told = record_.problem == Text(status);
      record_.problem = Text(status);
    }
    if (!told) spdlog::warn("migration of '{}': {}; it is tried again", names_.dataset, Text(status));
    Checkpoint();
    std::unique_lock lock(mutex_);
    asked_.wait_for(lock, kRetry, [this] { return stop_.load() || record_.wanted == Wanted::kCancel; });
  }
  drainer_.reset();
  return absl::OkStatus();
}

absl::Status Migration::RunPhase() {
  const Record now = record();
  if (now.wanted == Wanted::kCancel && now.phase != Phase::kAborting && !now.on_target &&
      now.phase != Phase::kCutover) {
    if (auto status = Change(
            [](Record& record) {
              record.phase = Phase::kAborting;
              record.wanted = Wanted::kNothing;
              record.parts.clear();
            },
            "cancelled");
        !status.ok()) {
      return status;
    }
  }
  if (!copier_ && now.phase != Phase::kPrepare && now.phase != Phase::kCreated) {
    const auto entry = router_.LoadEntry(now.dataset);
    if (!entry.ok()) return entry.status();
    const std::lock_guard lock(mutex_);
    copier_ = std::make_unique<Copier>(entry->spec.shape, truth(), copy(), epoch_);
  }
  switch (record().phase) {
    case Phase::kPrepare:
      return Prepare();
    case Phase::kBackfill:
      return Backfill();
    case Phase::kVerify:
      return Verify();
    case Phase::kReady:
    case Phase::kReversible: {
      const auto again = VerifyAgain(boots_);
      if (!again.ok() || *again) return again.status();
      return Follow();
    }
    case Phase::kCutover:
      return Cutover();
    case Phase::kFinishing:
      return Finish();
    case Phase::kAborting:
      return Abort();
    case Phase::kCreated:
      // About to be cancelled.
      Wait(kLook);
      break;
    case Phase::kFinished:
    case Phase::kAborted:
      break;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Migration::Boots(MigrationEndpoint& source, MigrationEndpoint& target) {
  auto first = source.Boot();
  if (!first.ok()) return first;
  auto second = target.Boot();
  if (!second.ok()) return second;
  return *first + "|" + *second;
}

absl::StatusOr<bool> Migration::VerifyAgain(const std::string& boots) {
  if (record().verified == boots) return false;
  absl::Status status = Change([](Record& record) { record.phase = Phase::kVerify; },
                               "a host was restarted or replaced: both sides are compared again");
  if (!status.ok()) return status;
  return true;
}

absl::Status Migration::Follow() {
  if (!drainer_) drainer_ = std::make_unique<Drainer>(*copier_);
  while (!stopping()) {
    if (auto status = drainer_->status(); !status.ok()) return status;
    const Record now = record();
    drainer_->Pause(now.paused);
    Wanted wanted = now.wanted;
    if (wanted == Wanted::kNothing && now.automatic && now.phase == Phase::kReady) wanted = Wanted::kCutover;
    switch (wanted) {
      case Wanted::kNothing:
        break;
      case Wanted::kVerify:
        return Change(
            [](Record& record) {
              record.phase = Phase::kVerify;
              record.wanted = Wanted::kNothing;
            },
            "both sides are compared again");
      case Wanted::kCancel:
        if (!now.on_target) return absl::OkStatus();
        [[fallthrough]];
      case Wanted::kRollback:
      case Wanted::kReverse:
      case Wanted::kCutover:
        if ((wanted == Wanted::kCutover) == now.on_target) {
          // It is there already.
          const bool cancels = wanted == Wanted::kRollback;
          if (auto status = Change([cancels](Record& record) {
                record.wanted = cancels ? Wanted::kCancel : Wanted::kNothing;
              });
              !status.ok()) {
            return status;
          }
          if (cancels) return absl::OkStatus();
          break;
        }
        return Change([](Record& record) { record.phase = Phase::kCutover; },
                      fmt::format("cutover to '{}' begins", now.on_target ? now.source : now.target));
      case Wanted::kFinish:
        if (!now.on_target) break;
        return Change(
            [](Record& record) {
              record.phase = Phase::kFinishing;
              record.wanted = Wanted::kNothing;
            },
            "finish begins");
    }
    Wait(kLook);
  }
  return absl::OkStatus();
}

}  // namespace kvstore::migration
