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
/// How often it looks whether hosts were restarted and partitions appeared.
constexpr milliseconds kLookAround{1000};

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

absl::Status Migration::ChangeEntry(const std::function<absl::Status(CatalogEntry&)>& change) {
  const auto checked = [&](CatalogEntry& entry) -> absl::Status {
    if (entry.spec.incarnation != names_.incarnation) {
      return absl::FailedPreconditionError("dataset: is another one of the same name");
    }
    return change(entry);
  };
  for (;;) {
    const int64_t at = version();
    absl::Status status = router_.ChangeEntry(names_.dataset, checked, {names_.dataset, at});
    if (!absl::IsAborted(status)) return status;
    // An operator's command may have changed the record meanwhile. That others change the catalog too says
    // nothing about this migration's worker; whether another one has taken over is found out when it begins
    // again.
    if (at == version()) return absl::UnavailableError(status.message());
  }
}

// ---- what is asked ----

void Migration::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  asked_.notify_all();
}

bool Migration::IsOver() const {
  const std::lock_guard lock(mutex_);
  return record_.phase == Phase::kFinished || record_.phase == Phase::kAborted;
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

absl::Status Migration::Resolve(std::string keep, std::string who) {
  absl::Status status = Change(
      [&](Record& record) {
        record.wanted = Wanted::kResolve;
        record.keep = keep;
      },
      fmt::format("'{}' is to be kept", keep), std::move(who));
  asked_.notify_all();
  return status;
}

absl::Status Migration::Abandon(std::string gone, std::string who) {
  absl::Status status = Change(
      [&](Record& record) {
        record.wanted = Wanted::kAbandon;
        record.gone = gone;
      },
      fmt::format("'{}' is to be given up for good", gone), std::move(who));
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

absl::Status Migration::Run() {
  bool taken = false;
  while (!stopping()) {
    if (IsOver()) return absl::OkStatus();
    const Wanted before = record().wanted;
    absl::Status status = taken ? absl::OkStatus() : TakeOver();
    if (status.ok() && !retake_ && !IsOver()) {
      taken = true;
      status = RunPhase();
    }
    if (status.ok()) {
      if (std::exchange(retake_, false)) {
        taken = false;
        fresh_ = false;
      }
      continue;
    }
    drainer_.reset();
    if (absl::IsAborted(status) && Overtaken()) {
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
    // What was asked for during the attempt is not waited with; what it failed at, is.
    asked_.wait_for(lock, kRetry, [&] {
      return stop_.load() || (record_.wanted != before &&
                              (record_.wanted == Wanted::kCancel || record_.wanted == Wanted::kAbandon));
    });
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
  if (!copier_) NewCopier(spec_.shape);
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

absl::Status Migration::Follow() {
  if (!drainer_) drainer_ = std::make_unique<Drainer>(*copier_);
  auto looked = std::chrono::steady_clock::now();
  while (!stopping()) {
    if (auto status = drainer_->status(); !status.ok()) return status;
    const Record now = record();
    if (now.wanted != Wanted::kNothing || std::chrono::steady_clock::now() - looked >= kLookAround) {
      const auto changed = HasChanged();
      if (!changed.ok()) return changed.status();
      if (*changed) {
        retake_ = true;
        return absl::OkStatus();
      }
      looked = std::chrono::steady_clock::now();
    }
    drainer_->Pause(now.paused);
    Wanted wanted = now.wanted;
    if (wanted == Wanted::kNothing && now.automatic && now.phase == Phase::kReady) wanted = Wanted::kCutover;
    switch (wanted) {
      case Wanted::kNothing:
        break;
      case Wanted::kResolve:
        if (auto status = Change([](Record& record) { record.wanted = Wanted::kNothing; }); !status.ok())
          return status;
        break;
      case Wanted::kAbandon:
        retake_ = true;
        return absl::OkStatus();
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
        if (!now.on_target) {
          // It was asked for while the truth was there.
          if (auto status = Change([](Record& record) { record.wanted = Wanted::kNothing; }); !status.ok())
            return status;
          break;
        }
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
