#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/fail_point.h"
#include "migration/migration.h"

/// The change of sides, and the end.
namespace kvstore::migration {
namespace {

using Clock = std::chrono::steady_clock;
using State = EndpointState;
using std::chrono::milliseconds;

/// How long a cutover waits for the dirty log to become short.
constexpr std::chrono::seconds kShortLog{30};
/// Entries of the dirty log, beyond which writes are not held.
constexpr size_t kMaxLag = 2000;
/// Local IDs that the target is raised above those of the source before the freeze: to do it costs more than
/// the gap that it leaves.
constexpr uint64_t kLocalIdMargin = 4096;

}  // namespace

absl::Status Migration::BackOut(const absl::Status& why) {
  // Of a worker that was overtaken this is refused; whatever else went wrong, writes are not held any longer.
  absl::Status serves = truth().Enter(epoch_, State::kServing, true);
  if (absl::IsAborted(why)) return why;
  if (!serves.ok()) return serves;
  held_.reset();
  // The other side is looked for again from the beginning.
  if (alone_) retake_ = true;
  const std::string told = "the cutover was given up: " + std::string(why.message());
  return Change(
      [&](Record& record) {
        record.phase = Resting();
        record.wanted = Wanted::kNothing;
        record.automatic = false;
        record.problem = told;
        // What an operator has said is right was to serve, and does not: the sides differ as before.
        if (!record.trusted.empty()) record.verified.clear();
        record.trusted.clear();
      },
      told);
}

absl::StatusOr<bool> Migration::GoOnWithCutover() {
  const auto give_up = [this](const absl::Status& why) -> absl::StatusOr<bool> {
    if (auto status = BackOut(why); !status.ok()) return status;
    return true;
  };
  const auto from = truth().Status();
  if (!from.ok()) return from.status();
  if (alone_) return give_up(absl::UnavailableError("the other side cannot be reached"));
  const auto to = copy().Status();
  if (!to.ok()) return to.status();
  if (to->Any(State::kServing) && CopyWasReplaced() && !TruthWasReplaced()) {
    // It may serve as it did before an earlier cutover, without what was written since; this side has all of
    // that.
    return Doubt(
        fmt::format("a host of '{}' was restarted or replaced while the truth moved there; whether clients "
                    "wrote there before that is not known",
                    on_target_ ? names_.source : names_.target));
  }
  if (to->Any(State::kServing)) {
    // A side that came back with less than it had may serve again: it must not beside the other one.
    if (!from->All(State::kMoved)) {
      if (auto status = truth().Reassert(epoch_, State::kMoved, true); !status.ok()) return status;
    }
    if (auto status = MoveOver(/*opened=*/true); !status.ok()) return status;
    return true;
  }
  if (!from->Any(State::kMoved) && !from->Any(State::kFrozen)) return false;
  if (!from->Any(State::kMoved)) {
    // Nobody knows for how long writes have been held.
    return give_up(absl::UnavailableError("it was interrupted"));
  }
  if (from->Any(State::kServing)) {
    // It was being given up, and clients write to what serves again: the rest follows.
    return give_up(absl::UnavailableError("it was interrupted while it was given up"));
  }
  // Nothing is written: what that worker has not copied is copied now.
  const auto deadline = Clock::now() + milliseconds(names_.freeze_ms);
  if (auto status = copier_->DrainAll(deadline, stop_); !status.ok()) return give_up(status);
  verified_ = record().verified;
  if (auto status = MoveOver(/*opened=*/false); !status.ok()) return status;
  return true;
}

absl::StatusOr<bool> Migration::Doubt(const std::string& why) {
  absl::Status status = Change(
      [&](Record& record) {
        record.phase = Phase::kVerify;
        record.wanted = Wanted::kNothing;
        record.doubt = why;
        record.trusted.clear();
      },
      why);
  if (!status.ok()) return status;
  // The side that is left serves again.
  retake_ = true;
  return true;
}

absl::Status Migration::Arm() {
  const State idle = record().crossed ? State::kMoved : State::kImporting;
  if (auto status = copy().Reassert(epoch_, idle, true); !status.ok()) return BackOut(status);
  Reached("cutover.armed");
  auto ids = truth().NextLocalIds();
  if (!ids.ok()) return BackOut(ids.status());
  for (auto& [shard, next] : *ids) next += kLocalIdMargin;
  if (auto status = copy().RaiseLocalIds(epoch_, *ids); !status.ok()) return BackOut(status);
  const auto give_up = Clock::now() + kShortLog;
  for (;;) {
    const auto begun = Clock::now();
    const auto drained = copier_->Drain();
    if (!drained.ok()) return drained.status();
    // What comes in such a time is copied in such a time again: short of what writes may be held for.
    if (*drained <= kMaxLag && Clock::now() - begun <= milliseconds(names_.freeze_ms) / 4) break;
    if (Clock::now() > give_up) {
      return BackOut(absl::UnavailableError("writes come faster than they are copied"));
    }
  }
  // What is begun now is gone through with; without the catalog that could not be done. It is asked before
  // writes are held, because its answer may take as long as it likes. From here on either side may have what
  // the other has not.
  absl::Status reachable = Change([](Record& record) { record.crossed = true; });
  if (!reachable.ok()) return BackOut(reachable);
  Reached("cutover.drained");
  return absl::OkStatus();
}

absl::Status Migration::Freeze() {
  const auto frozen_at = Clock::now();
  const auto in_time = frozen_at + milliseconds(names_.freeze_ms);
  const auto check_time = [&]() -> absl::Status {
    if (Clock::now() < in_time) return absl::OkStatus();
    return absl::DeadlineExceededError(
        fmt::format("writes were held for {} ms, which is as long as they may be", names_.freeze_ms));
  };
  if (auto status = truth().Enter(epoch_, State::kFrozen, true); !status.ok()) return BackOut(status);
  Reached("cutover.frozen");
  if (auto status = copier_->DrainAll(in_time, stop_); !status.ok()) return BackOut(status);
  Reached("cutover.empty");
  const auto last = truth().LastTimestamp();
  if (!last.ok()) return BackOut(last.status());
  if (auto status = copy().RaiseTimestamp(epoch_, *last); !status.ok()) return BackOut(status);
  if (auto status = check_time(); !status.ok()) return BackOut(status);
  const auto ids = truth().NextLocalIds();
  if (!ids.ok()) return BackOut(ids.status());
  if (auto status = copy().RaiseLocalIds(epoch_, *ids); !status.ok()) return BackOut(status);
  if (auto status = check_time(); !status.ok()) return BackOut(status);
  Reached("cutover.counted");
  held_ = Held{.writes = frozen_at, .reads = Clock::now()};
  return MoveOver(/*opened=*/false);
}

absl::Status Migration::Cutover() {
  drainer_.reset();
  const auto gone_on = GoOnWithCutover();
  if (!gone_on.ok() || *gone_on) return gone_on.status();
  const auto boots = Boots(*source_, *target_);
  if (!boots.ok()) return boots.status();
  const auto again = VerifyAgain(*boots);
  if (!again.ok()) return again.status();
  if (*again) return absl::UnavailableError("a host was restarted or replaced");
  verified_ = *boots;
  Reached("cutover.begin");
  if (auto status = Arm(); !status.ok() || record().phase != Phase::kCutover) return status;
  return Freeze();
}

absl::Status Migration::MoveOver(bool opened) {
  if (!opened) {
    if (auto status = truth().Enter(epoch_, State::kMoved, true); !status.ok()) return BackOut(status);
  }
  Reached("cutover.moved");
  if (!opened) {
    // Nobody has written to the other side yet: the way back is open.
    const auto boots = Boots(*source_, *target_);
    if (!boots.ok()) return BackOut(boots.status());
    if (*boots != verified_) {
      return BackOut(absl::UnavailableError("a host was restarted or replaced"));
    }
  }
  if (auto status = copy().Enter(epoch_, State::kServing, true); !status.ok()) return status;
  Reached("cutover.serving");
  return Route();
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
  const uint64_t writes = held_ ? Milliseconds(routed_at - held_->writes) : 0;
  const uint64_t reads = held_ ? Milliseconds(routed_at - held_->reads) : 0;
  if (held_) event += fmt::format("; writes were held for {} ms, reads for {} ms", writes, reads);
  absl::Status status = Change(
      [&](Record& record) {
        record.write_pause_ms = writes;
        record.read_pause_ms = reads;
        record.on_target = to_target;
        record.crossed = true;
        record.phase = to_target ? Phase::kReversible : Phase::kReady;
        // It serves because an operator has said that it is right: the other side is not the same yet.
        if (!record.trusted.empty()) record.verified.clear();
        record.automatic = false;
        record.problem.clear();
        // A rollback goes on with the removal of the target.
        const bool rolls_back = record.wanted == Wanted::kRollback || record.wanted == Wanted::kCancel;
        record.wanted = rolls_back && !to_target ? Wanted::kCancel : Wanted::kNothing;
      },
      std::move(event));
  if (!status.ok()) return status;
  Reached("cutover.recorded");
  held_.reset();
  on_target_ = to_target;
  NoteTruthBoot();
  NewCopier(spec_.shape);
  return absl::OkStatus();
}

// ---- the end ----

absl::Status Migration::Finish() {
  drainer_.reset();
  const uint64_t epoch = epoch_;
  // As long as nothing is dropped the way back is open.
  const auto left = source_->Status();
  if (!left.ok()) return left.status();
  if (!left->Any(State::kAbsent) && TruthWasReplaced()) {
    return Change([](Record& record) { record.phase = Phase::kReversible; },
                  "a host was restarted or replaced: both sides are compared before a finish");
  }
  // First what is retired, everywhere; only then nothing is recorded any more.
  if (auto status = source_->Enter(epoch, State::kAbsent, false); !status.ok()) return status;
  Reached("finish.dropped");
  if (auto status = target_->Enter(epoch, State::kServing, false); !status.ok()) return status;
  Reached("finish.plain");
  if (auto status = LeaveCatalog(); !status.ok()) return status;
  Reached("finish.routed");
  return End(Phase::kFinished, "finished: the source is gone");
}

absl::Status Migration::Abort() {
  drainer_.reset();
  const uint64_t epoch = epoch_;
  if (!record().released) {
    // Also from a freeze that was interrupted.
    if (auto status = source_->Enter(epoch, State::kServing, false); !status.ok()) return status;
    // However long the target cannot be reached: clients do not notice.
    if (auto status = Change([](Record& record) { record.released = true; }); !status.ok()) return status;
  }
  Reached("abort.plain");
  if (auto status = target_->Enter(epoch, State::kAbsent, false); !status.ok()) return status;
  Reached("abort.dropped");
  if (auto status = LeaveCatalog(); !status.ok()) return status;
  Reached("abort.routed");
  return End(Phase::kAborted, "cancelled: the target is gone");
}

absl::Status Migration::LeaveCatalog() {
  return ChangeEntry([](CatalogEntry& entry) {
    entry.other_backend.clear();
    entry.other_engine.clear();
    return absl::OkStatus();
  });
}

absl::Status Migration::End(Phase phase, std::string event) {
  // As long as there is the record, the dataset is not altered or dropped all the same.
  // And another worker's is not ended.
  Ledger& ledger = router_.ledger();
  const absl::Status ended =
      operation_.empty() ? ledger.EndLasting(AsOperation().what) : ledger.End(operation_);
  if (!ended.ok()) return ended;
  const std::lock_guard lock(mutex_);
  absl::Status status =
      router_.WithCatalog([&](Catalog& catalog) { return catalog.RemoveRecord(names_.dataset, version_); });
  if (!status.ok()) return status;
  spdlog::info("migration of '{}': {}", names_.dataset, event);
  record_.phase = phase;
  record_.problem.clear();
  record_.Add("worker", std::move(event), WallClockMs());
  return absl::OkStatus();
}

}  // namespace kvstore::migration
