#include "migration/migration.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/fail_point.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::migration {
namespace {

using std::chrono::milliseconds;

/// How long the worker waits before it retries a step that failed.
constexpr milliseconds kRetryInterval{500};
/// How long a status waits for the figures of a side.
constexpr milliseconds kMaxLagTime{2000};

std::string Text(const absl::Status& status) { return std::string(status.message()); }

}  // namespace

absl::StatusOr<std::unique_ptr<Migration>> Migration::Open(CatalogKeeper& keeper, std::string_view dataset,
                                                           ThrottleTime time) {
  CatalogRecord stored;
  absl::Status status = keeper.WithCatalog([&](Catalog& catalog) {
    auto found = catalog.GetRecord(dataset);
    if (!found.ok()) return found.status();
    stored = *std::move(found);
    return absl::OkStatus();
  });
  if (absl::IsNotFound(status)) {
    return absl::NotFoundError(fmt::format(
        "dataset: '{0}' does not migrate; kv migrate create {0} --to BACKEND records a migration, and "
        "kv migrate start {0} begins it",
        dataset));
  }
  if (!status.ok()) return status;
  auto record = Decode(stored.text);
  if (!record.ok()) {
    return absl::Status(
        record.status().code(),
        fmt::format(
            "dataset: '{}': {}; the migration stays as it is until its record can be read: docs/runbook.md, "
            "'The record of a migration cannot be read'",
            dataset, std::string(record.status().message())));
  }
  return std::unique_ptr<Migration>(
      new Migration(keeper, *std::move(record), stored.version, std::move(time)));
}

Migration::Migration(CatalogKeeper& keeper, Record record, int64_t version, ThrottleTime time)
    : keeper_(keeper),
      names_(record),
      record_(std::move(record)),
      version_(version),
      throttle_(names_.limits, std::move(time)),
      on_target_(names_.on_target),
      fresh_(names_.phase == Phase::kCreated || names_.phase == Phase::kPrepare) {}

// ---- the record ----

Record Migration::record() const {
  const MutexLock lock(mutex_);
  Record record = record_;
  if (copier_) record.drained_units += copier_->drained();
  if (const Verifier* const verifier = verifier_.load()) record.compared_units = verifier->compared();
  return record;
}

std::optional<DirtyLag> Migration::Lag() const {
  std::shared_ptr<ChangeCapture> changes;
  {
    const MutexLock lock(mutex_);
    if (!source_ || !target_) return std::nullopt;
    if (record_.phase == Phase::kFinished || record_.phase == Phase::kAborted) return std::nullopt;
    changes = record_.on_target ? target_ : source_;
  }
  // A side that hangs must not keep an operator from the rest of the status.
  const CallScope scope(kMaxLagTime);
  auto lag = changes->Lag();
  return lag.ok() ? std::optional(*lag) : std::nullopt;
}

absl::StatusOr<DeadlineMutex::Guard> Migration::LockChanges() {
  auto changing = changes_mutex_.Acquire(fmt::format("the record of the migration of '{}'", names_.dataset));
  if (changing.ok()) return changing;
  const std::string problem = InForce().problem;
  return absl::Status(changing.status().code(),
                      fmt::format("{}; nothing was changed{}{}", Text(changing.status()),
                                  problem.empty() ? "" : ". The migration's problem is: ", problem));
}

absl::Status Migration::Save(const Record& record) {
  const std::string text = Encode(record);
  int64_t version = 0;
  uint64_t tried_epoch = 0;
  {
    const MutexLock lock(mutex_);
    version = version_;
    tried_epoch = std::max(tried_epoch_, record_.epoch);
  }
  const auto keep_version = [&] {
    const MutexLock lock(mutex_);
    version_ = version;
  };
  const auto put = [&](Catalog& catalog) {
    const auto stored = catalog.PutRecord(names_.dataset, text, version);
    if (stored.ok()) version = *stored;
    return stored.status();
  };
  absl::Status status = keeper_.WithCatalog(put);
  if (!absl::IsUnavailable(status) && !absl::IsAborted(status)) {
    if (status.ok()) unsettled_ = false;
    keep_version();
    return status;
  }
  unsettled_ = true;
  if (absl::IsUnavailable(status)) {
    const MutexLock lock(mutex_);
    tried_epoch_ = std::max(tried_epoch_, record.epoch);
  }
  // An operator who has gone does not make the worker wait for the catalog once more.
  if (auto left = CheckCall(); !left.ok()) {
    return absl::Status(left.code(), fmt::format("{}; the record may or may not have been stored: {}",
                                                 Text(left), Text(status)));
  }
  // This write, or an earlier one whose answer was lost, may have happened: then the stored record is this
  // worker's, and its version is the one to write on.
  bool written = false;
  absl::Status read = keeper_.WithCatalog([&](Catalog& catalog) -> absl::Status {
    const auto stored = catalog.GetRecord(names_.dataset);
    if (!stored.ok()) return stored.status();
    written = stored->text == text;
    const auto there = Decode(stored->text);
    // A repair, or another worker of this process, may have stored a record of a later epoch.
    const bool mine = there.ok() && there->owner == catalog.self() &&
                      there->incarnation == names_.incarnation && there->epoch <= tried_epoch;
    if (!written && !mine) return status;
    version = stored->version;
    return absl::OkStatus();
  });
  keep_version();
  if (absl::IsNotFound(read)) return absl::AbortedError("another worker has ended the migration");
  if (written) unsettled_ = false;
  if (!read.ok() || written) return read;
  status = keeper_.WithCatalog(put);
  if (status.ok()) unsettled_ = false;
  if (absl::IsUnavailable(status)) {
    const MutexLock lock(mutex_);
    tried_epoch_ = std::max(tried_epoch_, record.epoch);
  }
  keep_version();
  return status;
}

void Migration::Install(const Record& before, Record changed) {
  const MutexLock lock(mutex_);
  if (changed.parts == before.parts) changed.parts = std::move(record_.parts);
  changed.drained_units = record_.drained_units;
  changed.backfill_ms = record_.backfill_ms;
  changed.shadow.compared = record_.shadow.compared;
  changed.shadow.dropped = record_.shadow.dropped;
  if (changed.limits != record_.limits) throttle_.Set(changed.limits);
  record_ = std::move(changed);
}

absl::Status Migration::ChangeOrRefuse(const std::function<absl::Status(Record&)>& change, std::string event,
                                       std::string who) {
  const auto changing = LockChanges();
  if (!changing.ok()) return changing.status();
  const Record before = InForce();
  Record changed = before;
  if (auto status = change(changed); !status.ok()) return status;
  if (who != "worker") {
    // This process's worker carries the request out. An earlier worker, whose process seemed to be dead and
    // was only slow, must not take the changed record for its own and write over it.
    auto self = Self();
    if (!self.ok()) return self.status();
    changed.owner = *std::move(self);
  }
  if (!event.empty()) changed.AddEvent(who, event, WallClockMs());
  if (auto status = Save(changed); !status.ok()) return status;
  Install(before, std::move(changed));
  // Not before it is stored: the log must not say of a change that failed that it was made.
  if (!event.empty()) spdlog::info("migration of '{}': {} ({})", names_.dataset, event, who);
  return absl::OkStatus();
}

absl::Status Migration::Change(const std::function<void(Record&)>& change, std::string event,
                               std::string who) {
  return ChangeOrRefuse(
      [&](Record& record) {
        change(record);
        return absl::OkStatus();
      },
      std::move(event), std::move(who));
}

void Migration::Checkpoint() {
  const DeadlineMutex::Guard changing = changes_mutex_.AcquireWithoutDeadline();
  Save(InForce()).IgnoreError();
}

absl::Status Migration::AdvanceTo(Phase phase, std::string event) {
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
      return absl::FailedPreconditionError("dataset: was dropped, and there is another one of the same name");
    }
    return change(entry);
  };
  for (;;) {
    const int64_t at = version();
    absl::Status status = keeper_.ChangeEntry(names_.dataset, checked, {names_.dataset, at});
    if (!absl::IsAborted(status)) return status;
    // An operator's command may have changed the record meanwhile. If the record is unchanged, somebody else
    // changed the catalog; that does not mean that another worker has taken over, which this worker finds out
    // when it retries.
    if (at == version()) return absl::UnavailableError(status.message());
  }
}

// ---- running ----

bool Migration::IsOver() const {
  const MutexLock lock(mutex_);
  return record_.phase == Phase::kFinished || record_.phase == Phase::kAborted;
}

void Migration::WaitForRequest(milliseconds time) {
  const auto now = std::chrono::steady_clock::now();
  if (unsettled_ && now >= settle_at_) {
    Checkpoint();
    settle_at_ = std::chrono::steady_clock::now() + kRetryInterval;
  }
  const auto until = now + time;
  MutexLock lock(mutex_);
  while (!stop_ && record_.wanted == Wanted::kNothing) {
    if (lock.WaitUntil(wake_run_, until)) return;
  }
}

absl::Status Migration::Run() {
  const CallScope scope(CallLimits{.cancelled = &cancelled_});
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
    if (absl::IsAborted(status) && WasOvertaken()) {
      spdlog::warn("migration of '{}': {}", names_.dataset, Text(status));
      return status;
    }
    if (stopping()) break;
    // A write of this attempt to the other side may still be in flight: the next attempt takes over under a
    // new epoch.
    taken = false;
    fresh_ = false;
    bool told = false;  // the same failure was logged before
    {
      const DeadlineMutex::Guard changing = changes_mutex_.AcquireWithoutDeadline();
      const MutexLock lock(mutex_);
      told = record_.problem == Text(status);
      record_.problem = Text(status);
    }
    if (!told) {
      spdlog::warn("migration of '{}': {}; the step is retried every {} ms", names_.dataset, Text(status),
                   kRetryInterval.count());
    }
    Checkpoint();
    const auto retry_at = std::chrono::steady_clock::now() + kRetryInterval;
    MutexLock lock(mutex_);
    while (!stop_) {
      // A way out that was requested during the attempt is taken at once; what failed is retried after a
      // pause.
      if (record_.wanted != before &&
          (record_.wanted == Wanted::kCancel || record_.wanted == Wanted::kAbandon)) {
        break;
      }
      if (lock.WaitUntil(wake_run_, retry_at)) break;
    }
  }
  drainer_.reset();
  return absl::OkStatus();
}

absl::Status Migration::RunPhase() {
  const Record now = record();
  bool cancels = now.wanted == Wanted::kCancel && now.phase != Phase::kAborting && !now.on_target &&
                 now.phase != Phase::kCutover;
  if (cancels && (now.phase == Phase::kReady || now.phase == Phase::kVerify)) {
    const auto waits = CancelMustWait();
    if (!waits.ok()) return waits.status();
    cancels = !*waits;
  }
  if (cancels) {
    if (auto status = ActOnRequest(
            Wanted::kCancel,
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
      const auto again = VerifyAgain(boot_ids_);
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
      // Only a migration that is to be cancelled is run in this phase.
      WaitForRequest(kPollInterval);
      break;
    case Phase::kFinished:
    case Phase::kAborted:
      break;
  }
  return absl::OkStatus();
}

absl::Status Migration::Follow() {
  if (!drainer_) drainer_ = std::make_unique<Drainer>(*copier_);
  auto checked = std::chrono::steady_clock::now();
  // They end before anything else is done with the copier.
  struct EndOfShadowReads {
    std::unique_ptr<ShadowReads>& reads;
    ~EndOfShadowReads() { reads.reset(); }
  } const end{shadow_reads_};
  while (!stopping()) {
    if (auto status = drainer_->status(); !status.ok()) return status;
    const Record now = record();
    if (now.wanted != Wanted::kNothing || std::chrono::steady_clock::now() - checked >= kCheckSidesInterval) {
      const auto changed = HasChanged();
      if (!changed.ok()) return changed.status();
      if (*changed) {
        retake_ = true;
        return absl::OkStatus();
      }
      checked = std::chrono::steady_clock::now();
    }
    drainer_->Pause(now.paused);
    if (auto status = FollowShadowReads(); !status.ok()) return status;
    const auto leaves = ActOnWanted(now);
    if (!leaves.ok() || *leaves) return leaves.status();
    WaitForRequest(kPollInterval);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Migration::ActOnWanted(const Record& now) {
  const Wanted asked = now.wanted;
  if (asked != Wanted::kNothing) Reached("follow.asked");
  Wanted wanted = asked;
  if (wanted == Wanted::kNothing && now.automatic && now.phase == Phase::kReady && now.shadow.open == 0) {
    wanted = Wanted::kCutover;
  }
  const auto clear = [](Record& record) { record.wanted = Wanted::kNothing; };
  absl::Status status;
  bool leaves = true;
  switch (wanted) {
    case Wanted::kNothing:
      return false;
    case Wanted::kResolve:
      // There is no doubt any more.
      leaves = false;
      status = ActOnRequest(asked, clear);
      break;
    case Wanted::kAbandon:
      retake_ = true;
      break;
    case Wanted::kVerify:
      status = ActOnRequest(
          asked,
          [](Record& record) {
            record.phase = Phase::kVerify;
            record.wanted = Wanted::kNothing;
          },
          "both sides are compared again");
      break;
    case Wanted::kCancel:
      // RunPhase begins to abort.
      if (!now.on_target) break;
      [[fallthrough]];
    case Wanted::kRollback:
    case Wanted::kReverse:
    case Wanted::kCutover:
      if ((wanted == Wanted::kCutover) == now.on_target) {
        // The side that is asked for is the truth already. A rollback goes on with the removal of the target.
        leaves = wanted == Wanted::kRollback;
        status = ActOnRequest(
            asked, [leaves](Record& record) { record.wanted = leaves ? Wanted::kCancel : Wanted::kNothing; });
        break;
      }
      status = BeginCutover(asked, now.on_target ? now.source : now.target);
      break;
    case Wanted::kFinish:
      if (!now.on_target) {
        // It was requested while the target was the truth.
        leaves = false;
        status = ActOnRequest(asked, clear);
        break;
      }
      status = ActOnRequest(
          asked,
          [](Record& record) {
            record.phase = Phase::kFinishing;
            record.wanted = Wanted::kNothing;
          },
          "finish begins");
      break;
  }
  if (!status.ok()) return status;
  return leaves;
}

}  // namespace kvstore::migration
