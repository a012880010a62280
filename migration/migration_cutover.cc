#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/fail_point.h"
#include "kvstore_api/call_scope.h"
#include "migration/migration.h"

/// The cutover, by which the truth changes sides, and the end of a migration.
namespace kvstore::migration {
namespace {

using Clock = std::chrono::steady_clock;
using State = EndpointState;
using std::chrono::milliseconds;

/// How long a cutover waits for the dirty log to become short.
constexpr std::chrono::seconds kShortLog{30};
/// Writes are not held while the dirty log has more entries than this.
constexpr size_t kMaxLag = 2000;
/// How far the other side's local IDs are raised above those of the truth before the freeze. The freeze
/// itself then has nothing to raise unless more objects are created meanwhile; the gap in the IDs costs less
/// than the time that would take.
constexpr uint64_t kLocalIdMargin = 4096;

}  // namespace

absl::Status Migration::BackOut(const absl::Status& why) {
  // The other side is not complete any more once clients can write here again.
  if (record().complete) {
    if (auto status = Change([](Record& record) { record.complete = false; }); !status.ok()) return status;
  }
  // Whatever went wrong, writes are not held any longer. A worker that was overtaken is refused here.
  absl::Status serves = truth().TransitionTo(epoch_, State::kServing, true);
  if (absl::IsAborted(why)) return why;
  if (!serves.ok()) return serves;
  paused_since_.reset();
  // A write of this attempt to the other side may still be in flight, or the other side could not be reached:
  // the worker takes over again, under a new epoch.
  retake_ = true;
  const std::string told = "the cutover was given up: " + std::string(why.message());
  return Change(
      [&](Record& record) {
        record.phase = RestingPhase();
        record.ClearWantedUnlessAbandon();
        record.automatic = false;
        record.problem = told;
        // The side that an operator has declared right should serve now, and does not: the sides still
        // differ.
        if (!record.trusted.empty()) record.verified.clear();
        record.trusted.clear();
      },
      told);
}

absl::StatusOr<bool> Migration::ResumeCutover() {
  const auto give_up = [this](const absl::Status& why) -> absl::StatusOr<bool> {
    if (auto status = BackOut(why); !status.ok()) return status;
    return true;
  };
  const auto from = truth().Status();
  if (!from.ok()) return from.status();
  if (alone_) return give_up(absl::UnavailableError("the other side cannot be reached"));
  const auto to = copy().Status();
  if (!to.ok()) return to.status();
  if (to->Any(State::kAbsent)) {
    // Whatever was found before: it does not have everything.
    if (auto status = Change([](Record& record) {
          record.verified.clear();
          record.complete = false;
        });
        !status.ok()) {
      return status;
    }
    if (to->Any(State::kServing)) {
      return RaiseDoubt(fmt::format("'{}' has no dataset on some of its partitions, and serves on others",
                                    on_target_ ? names_.source : names_.target));
    }
  }
  if (to->Any(State::kServing) && CopyWasReplaced() && !TruthWasReplaced()) {
    // The other side may serve as it did before an earlier cutover, without what was written since; this side
    // has all of that.
    return RaiseDoubt(
        fmt::format("a host of '{}' was restarted or replaced while the truth moved there; whether clients "
                    "wrote there before that is not known",
                    on_target_ ? names_.source : names_.target));
  }
  if (to->Any(State::kServing)) {
    // This side may have come back with older data and serve again, which it must not beside the other one.
    if (!from->All(State::kMoved)) {
      if (auto status = truth().Reassert(epoch_, State::kMoved, true); !status.ok()) return status;
    }
    if (auto status = SwitchSides(/*opened=*/true); !status.ok()) return status;
    return true;
  }
  if (record().complete) {
    // This side has lost its last writes, perhaps, and the other one has them.
    if (!IsUnchangedSinceVerified(/*of_truth=*/false)) {
      return give_up(absl::UnavailableError("hosts of both sides were restarted or replaced"));
    }
    if (auto status = truth().Reassert(epoch_, State::kMoved, true); !status.ok()) return status;
    if (auto status = SwitchSides(/*opened=*/true); !status.ok()) return status;
    return true;
  }
  if (!from->Any(State::kMoved) && !from->Any(State::kFrozen)) return false;
  if (!from->Any(State::kMoved)) {
    // Writes have been held since the earlier worker froze this side, nobody knows for how long.
    return give_up(absl::UnavailableError("it was interrupted"));
  }
  if (from->Any(State::kServing)) {
    // The cutover was being given up, and clients already write to the partitions that serve again.
    return give_up(absl::UnavailableError("it was interrupted while it was given up"));
  }
  // A side that lost its memory has only log entries that are older than what was copied from it.
  if (TruthWasReplaced() || CopyWasReplaced()) {
    return give_up(absl::UnavailableError("a host was restarted or replaced"));
  }
  // Nobody can write: what the earlier worker has not copied is copied now.
  const auto deadline = Clock::now() + milliseconds(names_.freeze_ms);
  if (auto status = copier_->DrainAll(deadline, stop_); !status.ok()) return give_up(status);
  verified_ = record().verified;
  if (auto status = SwitchSides(/*opened=*/false); !status.ok()) return status;
  return true;
}

absl::StatusOr<bool> Migration::RaiseDoubt(const std::string& why) {
  absl::Status status = Change(
      [&](Record& record) {
        record.phase = Phase::kVerify;
        record.ClearWantedUnlessAbandon();
        record.doubt = why;
        record.trusted.clear();
        record.complete = false;
      },
      why);
  if (!status.ok()) return status;
  // The takeover lets this side serve again.
  retake_ = true;
  return true;
}

absl::Status Migration::Arm() {
  const State idle = record().crossed ? State::kMoved : State::kImporting;
  if (auto status = copy().Reassert(epoch_, idle, true); !status.ok()) return BackOut(status);
  Reached("cutover.armed");
  auto ids = truth().NextLocalIds();
  if (!ids.ok()) return BackOut(ids.status());
  for (auto& [shard, next] : ids->shards) next += kLocalIdMargin;
  if (auto status = copy().RaiseLocalIds(epoch_, *ids); !status.ok()) return BackOut(status);
  const auto give_up = Clock::now() + kShortLog;
  for (;;) {
    const auto begun = Clock::now();
    const auto drained = copier_->Drain();
    if (!drained.ok()) return drained.status();
    // Draining what is written during one drain takes about as long again, while writes are held: that must
    // be well below the time for which they may be held.
    if (*drained <= kMaxLag && Clock::now() - begun <= milliseconds(names_.freeze_ms) / 4) break;
    if (Clock::now() > give_up) {
      return BackOut(absl::UnavailableError("writes come faster than they are copied"));
    }
  }
  // The entry is changed while neither side serves clients, so it must be readable before that.
  if (const auto entry = keeper_.LoadEntry(names_.dataset); !entry.ok()) return BackOut(entry.status());
  // From here on either side may have data that the other one lacks, which the record must say first. The
  // catalog is written before writes are held, because it may be slow, and because the cutover could not be
  // completed without it.
  absl::Status reachable = Change([](Record& record) { record.crossed = true; });
  if (!reachable.ok()) return BackOut(reachable);
  Reached("cutover.drained");
  return absl::OkStatus();
}

absl::Status Migration::CopyTheRest(Clock::time_point in_time) {
  // No call begins after that time, and those to another server end. A MySQL server that hangs in a call is
  // given up after its read timeout.
  const CallScope scope(CallLimits{.deadline = in_time, .cancelled = &cancelled_});
  if (auto status = truth().TransitionTo(epoch_, State::kFrozen, true); !status.ok()) return status;
  Reached("cutover.frozen");
  if (auto status = copier_->DrainAll(in_time, stop_); !status.ok()) return status;
  Reached("cutover.empty");
  const auto last = truth().LastTimestamp();
  if (!last.ok()) return last.status();
  if (auto status = copy().RaiseTimestamp(epoch_, *last); !status.ok()) return status;
  if (auto status = CheckCall(); !status.ok()) return status;
  const auto ids = truth().NextLocalIds();
  if (!ids.ok()) return ids.status();
  if (auto status = copy().RaiseLocalIds(epoch_, *ids); !status.ok()) return status;
  return CheckCall();
}

absl::Status Migration::Freeze() {
  const auto frozen_at = Clock::now();
  const absl::Status copied = CopyTheRest(frozen_at + milliseconds(names_.freeze_ms));
  if (absl::IsDeadlineExceeded(copied)) {
    return BackOut(absl::DeadlineExceededError(fmt::format(
        "writes were held for {} ms, and {} ms (freeze_ms), which is the limit, were not enough: {}",
        Milliseconds(Clock::now() - frozen_at), names_.freeze_ms, std::string(copied.message()))));
  }
  if (!copied.ok()) return BackOut(copied);
  Reached("cutover.counted");
  paused_since_ = PausedSince{.writes = frozen_at, .reads = Clock::now()};
  return SwitchSides(/*opened=*/false);
}

absl::Status Migration::Cutover() {
  if (drainer_) {
    // Writes that the drainer has failed to make may still arrive: then this worker needs a new epoch first.
    absl::Status drained = drainer_->Stop();
    drainer_.reset();
    if (!drained.ok()) return drained;
  }
  const auto gone_on = ResumeCutover();
  if (!gone_on.ok() || *gone_on) return gone_on.status();
  const auto boots = BootIdsOf(*source_, *target_);
  if (!boots.ok()) return boots.status();
  const auto again = VerifyAgain(*boots);
  if (!again.ok()) return again.status();
  if (*again) return absl::UnavailableError("a host was restarted or replaced");
  verified_ = *boots;
  Reached("cutover.begin");
  if (auto status = Arm(); !status.ok() || record().phase != Phase::kCutover) return status;
  return Freeze();
}

absl::Status Migration::SwitchSides(bool opened) {
  if (!opened) {
    if (auto status = truth().TransitionTo(epoch_, State::kMoved, true); !status.ok()) return BackOut(status);
  }
  Reached("cutover.moved");
  if (!opened) {
    auto status = CheckBothSidesBeforeOpening();
    if (!status.ok() || retake_ || record().phase != Phase::kCutover) return status;
  }
  if (auto status = copy().TransitionTo(epoch_, State::kServing, true); !status.ok()) return status;
  Reached("cutover.serving");
  return Route();
}

absl::Status Migration::CheckBothSidesBeforeOpening() {
  const auto [source, target] = SplitBootIds(verified_);
  const auto there = copy().BootId();
  // Nobody has written to the other side yet, so that the cutover can still be given up.
  if (!there.ok()) return BackOut(there.status());
  if (*there != (on_target_ ? source : target)) {
    return BackOut(absl::UnavailableError("a host was restarted or replaced"));
  }
  const auto here = truth().BootId();
  if (here.ok() && *here == (on_target_ ? target : source)) return absl::OkStatus();
  // All that was ever acknowledged has been copied. A host that comes back may have less, and may take writes
  // again: the next takeover closes it, if it answers, before it opens the other side.
  retake_ = true;
  {
    // Should the catalog not answer, this is stored with the claim of the next takeover.
    const DeadlineMutex::Guard changing = changes_mutex_.AcquireWithoutDeadline();
    const MutexLock lock(mutex_);
    record_.complete = true;
  }
  absl::Status status = Change(
      [](Record&) {},
      fmt::format("a host of '{}' was restarted or replaced after its last write was copied: '{}' "
                  "will serve, which has everything",
                  on_target_ ? names_.target : names_.source, on_target_ ? names_.source : names_.target));
  if (status.ok()) Reached("cutover.complete");
  return status;
}

absl::Status Migration::Route() {
  const bool to_target = !on_target_;
  absl::Status routed = ChangeEntry([&](CatalogEntry& entry) {
    entry.spec.backend = to_target ? names_.target : names_.source;
    entry.spec.engine = to_target ? names_.target_engine : names_.source_engine;
    entry.other_backend = to_target ? names_.source : names_.target;
    entry.other_engine = to_target ? names_.source_engine : names_.target_engine;
    return absl::OkStatus();
  });
  if (!routed.ok()) return routed;
  const auto routed_at = Clock::now();
  Reached("cutover.routed");
  std::string event = fmt::format("'{}' serves", to_target ? names_.target : names_.source);
  const uint64_t writes = paused_since_ ? Milliseconds(routed_at - paused_since_->writes) : 0;
  const uint64_t reads = paused_since_ ? Milliseconds(routed_at - paused_since_->reads) : 0;
  if (paused_since_) event += fmt::format("; writes were held for {} ms, reads for {} ms", writes, reads);
  if (auto status = RecordCutover(writes, reads, std::move(event)); !status.ok()) return status;
  Reached("cutover.recorded");
  paused_since_.reset();
  UpdateTruthBootId();
  NewCopier(spec_.shape);
  return absl::OkStatus();
}

absl::Status Migration::RecordCutover(uint64_t writes_ms, uint64_t reads_ms, std::string event) {
  const bool to_target = !on_target_;
  absl::Status status = Change(
      [&](Record& record) {
        record.write_pause_ms = writes_ms;
        record.read_pause_ms = reads_ms;
        record.on_target = to_target;
        record.crossed = true;
        record.complete = false;
        record.phase = to_target ? Phase::kReversible : Phase::kReady;
        // After `resolve` this side serves because an operator declared it right; the sides still differ.
        if (!record.trusted.empty()) record.verified.clear();
        record.automatic = false;
        record.problem.clear();
        // A rollback continues with the removal of the target.
        const bool rolls_back = record.wanted == Wanted::kRollback || record.wanted == Wanted::kCancel;
        if (rolls_back && !to_target) {
          record.wanted = Wanted::kCancel;
        } else {
          record.ClearWantedUnlessAbandon();
        }
        // The command to abandon this side was checked when the other one was the truth.
        if (record.wanted == Wanted::kAbandon && record.gone == (to_target ? names_.target : names_.source)) {
          record.wanted = Wanted::kNothing;
          record.problem = fmt::format("'{}' is the truth now, and is not given up", record.gone);
          record.AddEvent("worker", record.problem, WallClockMs());
          record.gone.clear();
        }
      },
      std::move(event));
  if (status.ok()) on_target_ = to_target;
  return status;
}

// ---- the end ----

absl::Status Migration::Finish() {
  drainer_.reset();
  if (auto status = CheckSidesFitNow(); !status.ok()) return status;
  const uint64_t epoch = epoch_;
  // While nothing has been dropped yet, the migration can still return to the reversible phase.
  const auto left = source_->Status();
  if (!left.ok()) return left.status();
  if (!left->Any(State::kAbsent) && TruthWasReplaced()) {
    return Change([](Record& record) { record.phase = Phase::kReversible; },
                  "a host was restarted or replaced: both sides are compared before a finish");
  }
  // The source is dropped everywhere before the target stops recording writes.
  if (auto status = source_->TransitionTo(epoch, State::kAbsent, false); !status.ok()) return status;
  Reached("finish.dropped");
  if (auto status = target_->TransitionTo(epoch, State::kServing, false); !status.ok()) return status;
  Reached("finish.plain");
  if (auto status = ClearOtherSide(); !status.ok()) return status;
  Reached("finish.routed");
  return End(Phase::kFinished, "finished: the source is gone");
}

absl::Status Migration::Abort() {
  drainer_.reset();
  if (auto status = CheckSidesFitNow(); !status.ok()) return status;
  const uint64_t epoch = epoch_;
  if (!record().released) {
    Reached("abort.begin");
    // While nothing has been dropped yet, the migration can still return to the ready phase.
    const auto waits = CancelMustWait();
    if (!waits.ok()) return waits.status();
    if (*waits) {
      // An earlier attempt may have ended the recording of writes on the source, which the takeover begins
      // again.
      retake_ = true;
      return Change(
          [](Record& record) {
            record.phase = Phase::kReady;
            record.automatic = false;
            if (record.wanted == Wanted::kNothing) record.wanted = Wanted::kCancel;
          },
          "a host was restarted or replaced: both sides are compared before the target is removed");
    }
    // The source may still be frozen by a cutover that was interrupted.
    if (auto status = source_->TransitionTo(epoch, State::kServing, false); !status.ok()) return status;
    // The removal of the target may wait until it can be reached, without effect on clients.
    if (auto status = Change([](Record& record) { record.released = true; }); !status.ok()) return status;
  }
  Reached("abort.plain");
  if (auto status = target_->TransitionTo(epoch, State::kAbsent, false); !status.ok()) return status;
  Reached("abort.dropped");
  if (auto status = ClearOtherSide(); !status.ok()) return status;
  Reached("abort.routed");
  return End(Phase::kAborted, "cancelled: the target is gone");
}

absl::Status Migration::ClearOtherSide() {
  return ChangeEntry([](CatalogEntry& entry) {
    entry.other_backend.clear();
    entry.other_engine.clear();
    return absl::OkStatus();
  });
}

absl::Status Migration::End(Phase phase, std::string event) {
  // The operation ends before the record is removed: while there is a record, nobody can alter or drop the
  // dataset anyway. It is ended by its ID, so that one that another worker has taken over stays.
  Ledger& ledger = keeper_.ledger();
  absl::Status ended = operation_.empty() ? ledger.EndLasting(AsOperation().what) : ledger.End(operation_);
  if (!ended.ok()) return ended;
  // Held until the record is gone, so that nobody changes it meanwhile.
  const DeadlineMutex::Guard changing = changes_mutex_.AcquireWithoutDeadline();
  int64_t version = 0;
  {
    const MutexLock lock(mutex_);
    version = version_;
  }
  absl::Status status =
      keeper_.WithCatalog([&](Catalog& catalog) { return catalog.RemoveRecord(names_.dataset, version); });
  if (!status.ok()) return status;
  spdlog::info("migration of '{}': {}", names_.dataset, event);
  const MutexLock lock(mutex_);
  record_.phase = phase;
  record_.problem.clear();
  record_.AddEvent("worker", std::move(event), WallClockMs());
  return absl::OkStatus();
}

}  // namespace kvstore::migration
