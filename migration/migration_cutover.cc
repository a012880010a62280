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
  if (absl::IsAborted(why)) return why;
  if (auto status = truth().Enter(epoch_, State::kServing, true); !status.ok()) return status;
  held_.reset();
  const std::string told = "the cutover was given up: " + std::string(why.message());
  absl::Status status = Change(
      [&](Record& record) {
        record.phase = Resting();
        record.wanted = Wanted::kNothing;
        record.automatic = false;
        record.problem = told;
      },
      told);
  return status;
}

absl::Status Migration::Cutover() {
  drainer_.reset();
  const uint64_t epoch = epoch_;
  const auto from = truth().Status();
  if (!from.ok()) return from.status();
  const auto to = copy().Status();
  if (!to.ok()) return to.status();
  if (from->Any(State::kMoved) || to->Any(State::kServing)) {
    // A worker before this one got so far. Writes are held: what it has not copied is copied now.
    if (!to->Any(State::kServing)) {
      if (auto status = copier_->DrainAll(Clock::time_point::max()); !status.ok()) return status;
    }
    return MoveOver(to->Any(State::kServing));
  }
  if (from->Any(State::kFrozen)) {
    // A worker before this one stopped here; nobody knows for how long writes have been held.
    return BackOut(absl::UnavailableError("it was interrupted"));
  }
  const auto boots = Boots(*source_, *target_);
  if (!boots.ok()) return boots.status();
  const auto again = VerifyAgain(*boots);
  if (!again.ok()) return again.status();
  if (*again) return absl::UnavailableError("a host was restarted or replaced");
  Reached("cutover.begin");
  // All that takes time, while writes go on.
  const State state = to->partitions.begin()->first;
  if (auto status = copy().Enter(epoch, state, true); !status.ok()) return BackOut(status);
  Reached("cutover.armed");
  auto ids = truth().NextLocalIds();
  if (!ids.ok()) return BackOut(ids.status());
  for (auto& [shard, next] : *ids) next += kLocalIdMargin;
  if (auto status = copy().RaiseLocalIds(epoch, *ids); !status.ok()) return BackOut(status);
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
  Reached("cutover.drained");

  const auto frozen_at = Clock::now();
  if (auto status = truth().Enter(epoch, State::kFrozen, true); !status.ok()) {
    return BackOut(status);
  }
  Reached("cutover.frozen");
  const auto in_time = frozen_at + milliseconds(names_.freeze_ms);
  if (auto status = copier_->DrainAll(in_time); !status.ok()) {
    return BackOut(status);
  }
  Reached("cutover.empty");
  const auto last = truth().LastTimestamp();
  if (!last.ok()) return BackOut(last.status());
  if (auto status = copy().RaiseTimestamp(epoch, *last); !status.ok()) return BackOut(status);
  ids = truth().NextLocalIds();
  if (!ids.ok()) return BackOut(ids.status());
  if (auto status = copy().RaiseLocalIds(epoch, *ids); !status.ok()) return BackOut(status);
  // Behind this point it is gone through with; without the catalog that could not be done.
  absl::Status reachable = Change([](Record&) {});
  if (!reachable.ok()) return BackOut(reachable);
  Reached("cutover.counted");

  held_ = Held{.writes = frozen_at, .reads = Clock::now()};
  return MoveOver(/*opened=*/false);
}

absl::Status Migration::MoveOver(bool opened) {
  const uint64_t epoch = epoch_;
  if (auto status = truth().Enter(epoch, State::kMoved, true); !status.ok()) {
    return opened ? status : BackOut(status);
  }
  Reached("cutover.moved");
  if (!opened) {
    // Nobody has written to the other side yet: the way back is open.
    const auto boots = Boots(*source_, *target_);
    if (!boots.ok()) return boots.status();
    if (*boots != record().verified) {
      return BackOut(absl::UnavailableError("a host was restarted or replaced"));
    }
  }
  if (auto status = copy().Enter(epoch, State::kServing, true); !status.ok()) return status;
  Reached("cutover.serving");
  const bool to_target = !on_target_;
  if (auto status = ChangeEntry([&](CatalogEntry& entry) {
        entry.spec.backend = to_target ? names_.target : names_.source;
        entry.spec.engine = to_target ? names_.target_engine : names_.source_engine;
        entry.other_backend = to_target ? names_.source : names_.target;
        entry.other_engine = to_target ? names_.source_engine : names_.target_engine;
      });
      !status.ok()) {
    return status;
  }
  const auto routed_at = Clock::now();
  Reached("cutover.routed");
  const auto entry = router_.LoadEntry(names_.dataset);
  if (!entry.ok()) return entry.status();
  std::string event = fmt::format("'{}' serves", to_target ? names_.target : names_.source);
  const uint64_t writes = held_ ? Milliseconds(routed_at - held_->writes) : 0;
  const uint64_t reads = held_ ? Milliseconds(routed_at - held_->reads) : 0;
  if (held_) event += fmt::format("; writes were held for {} ms, reads for {} ms", writes, reads);
  absl::Status status = Change(
      [&](Record& record) {
        record.write_pause_ms = writes;
        record.read_pause_ms = reads;
        record.on_target = to_target;
        record.phase = to_target ? Phase::kReversible : Phase::kReady;
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
  const std::lock_guard lock(mutex_);
  record_.drained_units += copier_->drained();
  copier_ = std::make_unique<Copier>(entry->spec.shape, truth(), copy(), epoch);
  return absl::OkStatus();
}

// ---- the end ----

absl::Status Migration::Finish() {
  drainer_.reset();
  const uint64_t epoch = epoch_;
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
  // Also from a freeze that was interrupted.
  if (auto status = source_->Enter(epoch, State::kServing, false); !status.ok()) return status;
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
  });
}

absl::Status Migration::End(Phase phase, std::string event) {
  absl::Status status =
      router_.WithCatalog([&](Catalog& catalog) { return catalog.RemoveRecord(names_.dataset); });
  if (!status.ok()) return status;
  spdlog::info("migration of '{}': {}", names_.dataset, event);
  const std::lock_guard lock(mutex_);
  record_.phase = phase;
  record_.problem.clear();
  record_.Add("worker", std::move(event), WallClockMs());
  return absl::OkStatus();
}

}  // namespace kvstore::migration
