#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/fail_point.h"
#include "migration/contradiction.h"
#include "migration/migration.h"

/// How a worker begins: it claims the migration, and brings both sides to the states that the record
/// requires. It works until another one has claimed the migration.
namespace kvstore::migration {
namespace {

using State = EndpointState;

/// Whether the truth serves in this phase, and new partitions may be added between two of its steps.
bool IsBetweenSteps(Phase phase) {
  return phase == Phase::kBackfill || phase == Phase::kVerify || phase == Phase::kReady ||
         phase == Phase::kReversible;
}

}  // namespace

// ---- the claim ----

absl::Status Migration::OpenSides() {
  auto entry = keeper_.LoadEntry(names_.dataset);
  if (!entry.ok()) return entry.status();
  if (entry->spec.incarnation != names_.incarnation) {
    return absl::NotFoundError("dataset: was dropped, and there is another one of the same name");
  }
  const auto open = [&](const std::string& name,
                        const std::string& engine) -> absl::StatusOr<std::shared_ptr<MigrationEndpoint>> {
    DatasetSpec spec = entry->spec;
    spec.backend = name;
    spec.engine = engine;
    const auto backend = keeper_.FindBackend(name);
    if (!backend.ok()) return backend.status();
    auto endpoint = (*backend)->OpenForMigration(spec);
    if (!endpoint.ok()) return endpoint.status();
    return std::shared_ptr<MigrationEndpoint>(*std::move(endpoint));
  };
  auto source = open(names_.source, names_.source_engine);
  if (!source.ok()) return source.status();
  auto target = open(names_.target, names_.target_engine);
  if (!target.ok()) return target.status();
  spec_ = entry->spec;
  const MutexLock lock(mutex_);
  if (copier_) record_.drained_units += copier_->drained();
  copier_.reset();
  source_ = *std::move(source);
  target_ = *std::move(target);
  return absl::OkStatus();
}

absl::Status Migration::RefreshExtents() {
  const Record now = record();
  std::string source = now.source_extent;
  std::string target = now.target_extent;
  const bool fixed =
      now.phase == Phase::kCutover || now.phase == Phase::kFinishing || now.phase == Phase::kAborting;
  if (!fixed) {
    // For a side that cannot be asked, the extent in the record stays.
    if (auto extent = source_->Extent(); extent.ok()) source = *std::move(extent);
    if (auto extent = target_->Extent(); extent.ok()) target = *std::move(extent);
  }
  if (auto status = source_->Limit(source); !status.ok()) return status;
  if (auto status = target_->Limit(target); !status.ok()) return status;
  // Records that earlier versions wrote, and those of migrations that begin, have no extents yet.
  const bool grew = (now.source_extent != source && !now.source_extent.empty()) ||
                    (now.target_extent != target && !now.target_extent.empty());
  const DeadlineMutex::Guard changing = changes_mutex_.AcquireWithoutDeadline();
  const MutexLock lock(mutex_);
  record_.source_extent = std::move(source);
  record_.target_extent = std::move(target);
  // New partitions may have been written to before capture began there: the comparison finds that.
  if (grew && (now.phase == Phase::kReady || now.phase == Phase::kReversible)) {
    record_.phase = Phase::kVerify;
    record_.AddEvent("worker", "shards were opened or closed: both sides are compared again", WallClockMs());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Migration::Self() {
  std::string self;
  absl::Status asked = keeper_.WithCatalog([&](Catalog& catalog) {
    self = catalog.self();
    return absl::OkStatus();
  });
  if (!asked.ok()) return asked;
  return self;
}

absl::Status Migration::ConfirmClaim() {
  return Change([](Record&) {});
}

absl::Status Migration::Claim(uint64_t epoch, const std::function<void(Record&)>& change) {
  const auto self = Self();
  if (!self.ok()) return self.status();
  absl::Status status = Change([&](Record& record) {
    if (change) change(record);
    record.epoch = epoch;
    record.owner = *self;
  });
  if (!status.ok()) return status;
  Reached("takeover.recorded");
  epoch_ = epoch;
  return absl::OkStatus();
}

std::function<void(Record&)> Migration::ForgetComparison(const EndpointStatus* truth,
                                                         const EndpointStatus* copy) {
  const Record now = record();
  const EndpointStatus none;
  const EndpointStatus& here = truth == nullptr ? none : *truth;
  const EndpointStatus& there = copy == nullptr ? none : *copy;
  const bool outdated = IsOutdated(now, here, &there);
  const bool crossed = outdated && ShowsCutover(here, there);
  // The truth may then have units that the copy lacks, or writes that were not recorded.
  const bool counts_while = now.phase == Phase::kVerify || now.phase == Phase::kReady ||
                            now.phase == Phase::kReversible || now.phase == Phase::kCutover;
  const bool lacks = counts_while && (there.Any(State::kAbsent) ||
                                      (truth != nullptr && here.Any(State::kServing) && !here.capture));
  return [this, outdated, crossed, lacks](Record& record) {
    if (outdated) {
      record.verified.clear();
      record.trusted.clear();
      record.shadow.open = 0;
      record.shadow.examples.clear();
      record.crossed = record.crossed || crossed;
      const bool copies = record.phase == Phase::kBackfill && crossed;
      if (copies || record.phase == Phase::kReady || record.phase == Phase::kReversible) {
        record.phase = Phase::kVerify;
      }
      record.AddEvent("worker",
                      "the record is older than what both sides have, and both sides are compared again",
                      WallClockMs());
    } else if (lacks && record.verified.find('|') != std::string::npos) {
      // As if the copy had been replaced.
      const auto [source, target] = SplitBootIds(record.verified);
      std::string left = on_target_ ? "|" + std::string(target) : std::string(source) + "|";
      record.verified = std::move(left);
    }
  };
}

absl::Status Migration::CheckSidesFit(const EndpointStatus& truth, const EndpointStatus* copy) {
  const std::string why = FindContradiction(record(), spec_.backend, truth, copy);
  if (why.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("the migration's record does not fit what both sides have, and nothing is changed: {}; kv "
                  "migrate repair {} "
                  "says what to do",
                  why, names_.dataset));
}

absl::Status Migration::CheckSidesFitNow() {
  const auto there = truth().Status();
  if (!there.ok() && !record().released) return there.status();
  const auto other = copy().Status();
  return CheckSidesFit(there.value_or(EndpointStatus{}), other.ok() ? &*other : nullptr);
}

bool Migration::CanProceedAlone(const EndpointStatus& truth, bool same_truth) const {
  const MutexLock lock(mutex_);
  // A cutover may be holding writes, which must end whether or not the other side can be reached. But if this
  // side may have lost its state, the other one may be serving by now.
  if (record_.phase == Phase::kCutover) return !truth.Any(State::kMoved) && same_truth;
  if (record_.phase == Phase::kAborting) return true;
  // From the first cutover on the other side may have what this one has lost.
  return record_.wanted == Wanted::kCancel && !record_.on_target && (same_truth || !record_.crossed);
}

absl::Status Migration::TakeOver() {
  drainer_.reset();
  alone_ = false;
  if (auto status = OpenSides(); !status.ok()) return absl::IsNotFound(status) ? EndOrphan() : status;
  if (auto status = RefreshExtents(); !status.ok()) return status;
  // This needs neither side, so that a side which is down does not keep the record from saying what is true.
  if (const auto adopted = AdoptRoutedCutover(); !adopted.ok() || *adopted) return adopted.status();
  const Record now = record();
  if (now.wanted == Wanted::kAbandon) return EndWithoutGoneSide();
  // A truth that was released serves without the migration, and is not asked any more.
  const auto truth_status =
      now.released ? absl::StatusOr<EndpointStatus>(EndpointStatus{}) : truth().Status();
  const auto copy_status = copy().Status();
  if (!truth_status.ok()) {
    if (now.phase == Phase::kCutover && copy_status.ok() &&
        (copy_status->All(State::kServing) || (now.complete && !IsOutdated(now, {}, &*copy_status))) &&
        IsUnchangedSinceVerified(/*of_truth=*/false)) {
      return TakeOverOpenedCutover(*copy_status);
    }
    return truth_status.status();
  }
  if (!copy_status.ok()) {
    if (IsOutdated(now, *truth_status, nullptr) ||
        !CanProceedAlone(*truth_status, IsUnchangedSinceVerified(/*of_truth=*/true))) {
      return copy_status.status();
    }
    alone_ = true;
  }
  const EndpointStatus* const copy_now = copy_status.ok() ? &*copy_status : nullptr;
  if (auto fits = now.released ? CheckSidesFitNow() : CheckSidesFit(*truth_status, copy_now); !fits.ok()) {
    return fits;
  }
  const auto forget = ForgetComparison(now.released ? nullptr : &*truth_status, copy_now);
  const uint64_t above =
      std::max({now.epoch, truth_status->epoch, copy_status.ok() ? copy_status->epoch : 0, WallClockMs()});
  if (auto status = Claim(above + 1, forget); !status.ok()) return status;
  if (const auto adopted = AdoptRoutedCutover(); !adopted.ok() || *adopted) return adopted.status();
  // Only the first phase requires the operation in the ledger; later ones go on without, because clients may
  // be waiting for them.
  if (now.phase == Phase::kPrepare) {
    if (auto status = ConfirmClaim(); !status.ok()) return status;
    if (auto status = BeginOperation(); !status.ok()) return status;
  }
  if (!now.released) {
    if (auto status = truth().RaiseEpoch(epoch_); !status.ok()) return status;
  }
  Reached("takeover.half");
  if (alone_) return absl::OkStatus();
  if (!now.released) {
    if (auto status = ReadBootIds(); !status.ok()) return status;
  }
  if (auto status = copy().RaiseEpoch(epoch_); !status.ok()) return status;
  if (auto status = ConfirmClaim(); !status.ok()) return status;
  if (now.phase != Phase::kPrepare) BeginOperation().IgnoreError();
  return ReassertSides();
}

absl::StatusOr<bool> Migration::AdoptRoutedCutover() {
  if (record().phase != Phase::kCutover) return false;
  const auto entry = keeper_.LoadEntry(names_.dataset);
  if (!entry.ok()) return entry.status();
  const std::string& backend = on_target_ ? names_.source : names_.target;
  const std::string& engine = on_target_ ? names_.source_engine : names_.target_engine;
  if (entry->spec.backend != backend || entry->spec.engine != engine) return false;
  // A side that cannot be asked does not keep the record from saying what is true.
  const auto left = truth().Status();
  const auto opened = copy().Status();
  const auto forget = ForgetComparison(left.ok() ? &*left : nullptr, opened.ok() ? &*opened : nullptr);
  // Without the claim the earlier worker, if it is only slow, would take the changed record for its own.
  if (auto status = Claim(std::max(record().epoch, WallClockMs()) + 1, forget); !status.ok()) return status;
  absl::Status status = RecordCutover(
      0, 0, fmt::format("'{}' serves: an earlier worker had routed clients there before it ended", backend));
  if (!status.ok()) return status;
  retake_ = true;
  return true;
}

Operation Migration::AsOperation() const {
  DatasetSpec source = spec_;
  source.name = names_.dataset;
  source.backend = names_.source;
  DatasetSpec target = source;
  target.backend = names_.target;
  return keeper_.MigrationOf(source, target);
}

absl::Status Migration::BeginOperation() {
  // The operation was begun when the migration was created, unless an earlier version created it, or the
  // ledger is only in memory.
  auto begun = keeper_.ledger().Begin(AsOperation());
  // If it failed, the operation may have another ID by now: then it is ended by its name.
  operation_ = begun.ok() ? begun->Detach() : "";
  return begun.status();
}

absl::Status Migration::TakeOverOpenedCutover(const EndpointStatus& opened) {
  if (auto status = Claim(std::max({record().epoch, opened.epoch, WallClockMs()}) + 1,
                          ForgetComparison(nullptr, &opened));
      !status.ok()) {
    return status;
  }
  if (auto status = copy().RaiseEpoch(epoch_); !status.ok()) return status;
  if (auto status = ConfirmClaim(); !status.ok()) return status;
  if (!opened.All(State::kServing)) {
    // The epoch holds only on the hosts that have been asked here.
    if (!IsUnchangedSinceVerified(/*of_truth=*/false)) {
      return absl::UnavailableError("hosts of both sides were restarted, replaced or lost");
    }
    if (auto status = copy().TransitionTo(epoch_, State::kServing, true); !status.ok()) return status;
    Reached("cutover.serving");
  }
  NewCopier(spec_.shape);
  // Only the catalog is still to be changed. The next takeover tries the lost side again.
  retake_ = true;
  boot_ids_.clear();
  return Route();
}

absl::Status Migration::ReassertSides() {
  const Record now = record();
  if (now.phase == Phase::kFinishing || now.phase == Phase::kAborting) {
    if (auto status = CheckSidesFitNow(); !status.ok()) return status;
    const auto there = copy().Status();
    if (!there.ok()) return there.status();
    if (!there->Any(State::kServing) && !there->Any(State::kFrozen)) return absl::OkStatus();
    return copy().Reassert(epoch_, State::kMoved, true);
  }
  if (!IsBetweenSteps(now.phase)) return absl::OkStatus();
  // The copy first, so that the two never serve at the same time.
  const State idle = now.crossed ? State::kMoved : State::kImporting;
  if (auto status = copy().Reassert(epoch_, idle, now.crossed); !status.ok()) return status;
  if (auto status = truth().Reassert(epoch_, State::kServing, true); !status.ok()) return status;
  Reached("takeover.reasserted");
  // A side that must not serve has an empty log, unless it came back and clients wrote there all the same.
  if (!now.crossed || !now.doubt.empty() || now.trusted == boot_ids_) return absl::OkStatus();
  const auto lag = copy().Lag();
  if (!lag.ok()) return lag.status();
  if (lag->entries == 0) return absl::OkStatus();
  const std::string doubt = fmt::format(
      "'{}' came back as it was before the cutover, and has {} or more units in its log that clients may "
      "have written "
      "there since",
      on_target_ ? names_.source : names_.target, lag->entries);
  return Change(
      [&](Record& record) {
        record.phase = Phase::kVerify;
        record.doubt = doubt;
        record.ClearWantedUnlessAbandon();
      },
      doubt);
}

absl::Status Migration::EndOrphan() {
  const Record now = record();
  if (now.phase == Phase::kCreated || now.phase == Phase::kPrepare || now.wanted == Wanted::kCancel) {
    return End(Phase::kAborted,
               "cancelled: the dataset was dropped, or replaced by another one of the same name");
  }
  return absl::UnavailableError(
      fmt::format("the dataset '{0}' that migrates is not in the catalog any more; kv migrate cancel {0} "
                  "forgets the migration",
                  names_.dataset));
}

bool Migration::WasOvertaken() {
  absl::Status gone;
  std::string self;
  absl::StatusOr<Record> there = absl::NotFoundError("");
  absl::Status looked = keeper_.WithCatalog([&](Catalog& catalog) {
    const auto stored = catalog.GetRecord(names_.dataset);
    self = catalog.self();
    gone = stored.status();
    if (stored.ok()) there = Decode(stored->text);
    return absl::OkStatus();
  });
  if (!looked.ok()) return false;
  if (!there.ok()) return absl::IsNotFound(gone);
  const MutexLock lock(mutex_);
  return there->owner != self || there->incarnation != names_.incarnation || there->epoch > record_.epoch;
}

void Migration::NewCopier(Shape shape) {
  const MutexLock lock(mutex_);
  if (copier_) record_.drained_units += copier_->drained();
  copier_ = std::make_unique<Copier>(shape, CopySource{truth(), truth()}, CopyTarget{copy(), copy()}, epoch_,
                                     [this] { return CheckTruth(); });
}

// ---- without a side ----

absl::Status Migration::EndWithoutGoneSide() {
  const Record now = record();
  const bool target_gone = now.gone == names_.target && now.gone != names_.source;
  MigrationControl& left = target_gone ? *source_ : *target_;
  MigrationControl& dead = target_gone ? *target_ : *source_;
  const std::string& serves = target_gone ? names_.source : names_.target;
  Reached("abandon.begin");
  const auto status = left.Status();
  if (!status.ok()) return status.status();
  const bool serves_alone = status->All(State::kServing) && !status->capture;
  if (!serves_alone && dead.Status().ok()) {
    // Clients may have written to it since it was given up.
    retake_ = true;
    const std::string told = fmt::format("'{}' answers again, and is not given up", now.gone);
    return Change(
        [&](Record& record) {
          record.wanted = Wanted::kNothing;
          record.gone.clear();
          record.problem = told;
        },
        told);
  }
  if (auto claimed = Claim(std::max({now.epoch, status->epoch, WallClockMs()}) + 1); !claimed.ok())
    return claimed;
  // A worker that was only slow may have routed clients to the side that is gone until just before the claim.
  if (const auto adopted = AdoptRoutedCutover(); !adopted.ok() || *adopted) return adopted.status();
  if (auto raised = left.RaiseEpoch(epoch_); !raised.ok()) return raised;
  if (auto confirmed = ConfirmClaim(); !confirmed.ok()) return confirmed;
  BeginOperation().IgnoreError();
  // Also creates shards that appeared meanwhile.
  if (auto made = left.Reassert(epoch_, State::kServing, true); !made.ok()) return made;
  if (auto entered = left.TransitionTo(epoch_, State::kServing, false); !entered.ok()) return entered;
  Reached("abandon.serving");
  absl::Status routed = ChangeEntry([&](CatalogEntry& entry) {
    entry.spec.backend = serves;
    entry.spec.engine = target_gone ? names_.source_engine : names_.target_engine;
    entry.other_backend.clear();
    entry.other_engine.clear();
    return absl::OkStatus();
  });
  if (!routed.ok()) return routed;
  Reached("abandon.routed");
  return End(target_gone ? Phase::kAborted : Phase::kFinished,
             fmt::format("'{}' was given up for good: '{}' serves", now.gone, serves));
}

}  // namespace kvstore::migration
