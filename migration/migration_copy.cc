#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "backend_api/unit_key.h"
#include "base/clock.h"
#include "base/fail_point.h"
#include "kvstore_api/call_scope.h"
#include "migration/migration.h"

/// The phases from the start until both sides are the same: prepare, backfill, verify.
namespace kvstore::migration {
namespace {

using Clock = std::chrono::steady_clock;
using State = EndpointState;
using std::chrono::milliseconds;

/// How often the backfill stores its progress.
constexpr milliseconds kCheckpoint{1000};
/// Passes of verification after which the worker reports that it does not converge.
constexpr uint64_t kMaxPasses = 20;

/// Keeps the error of the thread that failed first. Thread-safe.
class FirstFailure {
 public:
  void Add(const absl::Status& status) {
    const MutexLock lock(mutex_);
    if (status_.ok()) status_ = status;
  }
  absl::Status status() const {
    const MutexLock lock(mutex_);
    return status_;
  }

 private:
  mutable Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::Status Migration::Prepare() {
  if (operation_.empty()) {
    // This worker took the migration over before that was started, when the operation was not required.
    retake_ = true;
    return absl::OkStatus();
  }
  Reached("prepare.begin");
  if (auto status = ChangeEntry([&](CatalogEntry& entry) -> absl::Status {
        // Both sides were opened with spec_, and nobody can alter the dataset from here on.
        if (entry.spec != spec_)
          return absl::UnavailableError("dataset: was altered just now; it is opened again");
        entry.other_backend = names_.target;
        entry.other_engine = names_.target_engine;
        return absl::OkStatus();
      });
      !status.ok()) {
    return status;
  }
  Reached("prepare.named");
  const uint64_t epoch = epoch_;
  // An earlier migration that was ended without this side may have left data there: it is removed.
  const auto left = target_->Status();
  if (!left.ok()) return left.status();
  if (left->Any(State::kMoved) || left->Any(State::kImporting)) {
    if (auto status = target_->TransitionTo(epoch, State::kAbsent, false); !status.ok()) return status;
    // The epoch was stored with the state that has just been removed.
    if (auto status = target_->RaiseEpoch(epoch); !status.ok()) return status;
  }
  if (auto status = target_->TransitionTo(epoch, State::kImporting, false); !status.ok()) return status;
  // Capture is tried once, so that what the target lacks for serving is reported now and not at the cutover.
  if (auto status = target_->TransitionTo(epoch, State::kImporting, true); !status.ok()) return status;
  if (auto status = target_->TransitionTo(epoch, State::kImporting, false); !status.ok()) return status;
  Reached("prepare.target");
  // Fails now, and not when objects are copied, if the target lacks one of the source's shards.
  const auto ids = source_->NextLocalIds();
  if (!ids.ok()) return ids.status();
  if (auto status = target_->RaiseLocalIds(epoch, *ids); !status.ok()) return status;
  if (auto status = source_->TransitionTo(epoch, State::kServing, true); !status.ok()) return status;
  Reached("prepare.capture");
  const auto ranges = source_->Partitions(size_t{4} * record().threads);
  if (!ranges.ok()) return ranges.status();
  return Change(
      [&](Record& record) {
        record.parts.clear();
        for (const UnitRange& range : *ranges) record.parts.push_back({.range = range});
        record.phase = Phase::kBackfill;
        record.problem.clear();
      },
      fmt::format("writes are recorded, {} partitions are to be copied", ranges->size()));
}

bool Migration::BackfillIsInterrupted() const {
  const MutexLock lock(mutex_);
  return record_.wanted == Wanted::kCancel || record_.wanted == Wanted::kAbandon || record_.paused;
}

absl::Status Migration::CopyPart(size_t part, const std::function<bool()>& stop) {
  UnitRange range;
  {
    const MutexLock lock(mutex_);
    const Part& copied = record_.parts[part];
    if (copied.done) return absl::OkStatus();
    range = copied.range;
    if (!copied.next.empty()) range.start = copied.next;
  }
  auto scan = truth().Scan(range, WallClockMs());
  if (!scan.ok()) return scan.status();
  while (!stop()) {
    const auto started = throttle_.Now();
    const auto page = copier_->CopyPage(**scan, fresh_);
    if (!page.ok()) return page.status();
    const auto took = throttle_.Now() - started;
    {
      const MutexLock lock(mutex_);
      Part& copied = record_.parts[part];
      copied.done = page->ended;
      copied.units += page->units;
      copied.bytes += page->bytes;
      if (!page->last.empty()) copied.next = page->last;
    }
    // The throttle also holds after the last page of a part: the thread goes on with another part.
    throttle_.Wait(page->units, page->bytes, took, stop);
    if (page->ended) return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status Migration::CopyParts() {
  const Record before = record();
  const auto begin = Clock::now();
  FirstFailure failure;
  std::atomic<bool> failed{false};
  const auto fail = [&](const absl::Status& status) {
    failure.Add(status);
    failed = true;
  };
  const auto stop = [&] { return failed || stopping() || BackfillIsInterrupted(); };
  const size_t count = before.parts.size();
  const size_t threads = std::min<size_t>(before.threads, count);
  std::atomic<size_t> next{0};
  std::atomic<size_t> running{threads};
  std::vector<std::thread> copiers;
  for (size_t t = 0; t < threads; ++t) {
    copiers.emplace_back([&, limits = CallScope::Current()] {
      const CallScope scope(limits);
      for (size_t i = next++; i < count && !failed && !stopping(); i = next++) {
        if (auto status = CopyPart(i, stop); !status.ok()) fail(status);
      }
      --running;
    });
  }
  const auto count_time = [&] {
    const MutexLock lock(mutex_);
    record_.backfill_ms = before.backfill_ms + Milliseconds(Clock::now() - begin);
  };
  auto saved = Clock::now();
  while (running > 0) {
    std::this_thread::sleep_for(kPollInterval / 5);
    if (auto status = drainer_->status(); !status.ok()) fail(status);
    if (auto status = ProbeReadLatency(); !status.ok()) fail(status);
    if (Clock::now() - saved < kCheckpoint) continue;
    count_time();
    Checkpoint();
    Reached("backfill.checkpoint");
    saved = Clock::now();
  }
  for (std::thread& copier : copiers) copier.join();
  count_time();
  return failure.status();
}

absl::Status Migration::Backfill() {
  drainer_ = std::make_unique<Drainer>(*copier_);
  if (auto status = CopyParts(); !status.ok()) return status;
  if (stopping()) return absl::OkStatus();
  const Record now = record();
  if (now.wanted == Wanted::kCancel) return absl::OkStatus();
  if (now.wanted == Wanted::kAbandon) {
    retake_ = true;
    return absl::OkStatus();
  }
  if (now.PartsDone() < now.parts.size()) {
    // The backfill is paused. The units that it has copied so far are still kept current.
    while (record().paused && !stopping() && record().wanted != Wanted::kCancel &&
           record().wanted != Wanted::kAbandon) {
      if (auto status = drainer_->status(); !status.ok()) return status;
      WaitForRequest(kPollInterval);
    }
    return absl::OkStatus();
  }
  Reached("backfill.done");
  return AdvanceTo(Phase::kVerify, fmt::format("{} units are copied, in {:.1f} s", now.UnitsDone(),
                                               static_cast<double>(now.backfill_ms) / 1000));
}

absl::Status Migration::ProbeReadLatency() {
  if (throttle_.limits().max_read_us == 0) return absl::OkStatus();
  std::string key;
  {
    const MutexLock lock(mutex_);
    for (const Part& part : record_.parts) {
      if (!part.next.empty() && !part.done) key = part.next;
    }
  }
  if (key.empty()) return absl::OkStatus();
  const auto begun = Clock::now();
  const auto read = truth().Read({&key, 1}, WallClockMs());
  if (!read.ok()) return read.status();
  throttle_.Observe(Clock::now() - begun);
  return absl::OkStatus();
}

absl::StatusOr<Migration::VerifyMode> Migration::ChooseVerifyMode() {
  // From the first cutover on, both sides have what clients were told is written. The copy is repaired from
  // the truth only if the copy may have lost something and the truth has not; who is right about any other
  // difference, an operator must decide.
  const Record before = record();
  const bool trusted = before.trusted == boot_ids_;
  // Clients wrote to the side that must not serve, because they believed that it did.
  bool strayed = false;
  if (before.crossed && !trusted) {
    const auto lag = copy().Lag();
    if (!lag.ok()) return lag.status();
    strayed = lag->entries > 0;
  }
  VerifyMode mode;
  mode.repairs = !before.crossed || trusted || (CopyWasReplaced() && !TruthWasReplaced() && !strayed);
  // Draining the log would already overwrite what the copy has with what the truth has.
  mode.drains = mode.repairs || (!TruthWasReplaced() && !strayed);
  return mode;
}

absl::StatusOr<std::vector<UnitRange>> Migration::RangesOfBothSides() {
  const size_t wanted = record().threads;
  auto ranges = source_->Partitions(wanted);
  if (!ranges.ok()) return ranges;
  auto others = target_->Partitions(wanted);
  if (!others.ok()) return others;
  // Ranges of keys mean the same on both sides; those of shards only where both sides have the same ones.
  const auto keys = [](const std::vector<UnitRange>& some) {
    return std::all_of(some.begin(), some.end(), [](const UnitRange& range) { return range.shard.empty(); });
  };
  if (*ranges != *others) {
    if (!keys(*ranges) || (keys(*others) && others->size() > ranges->size())) ranges = *others;
    if (!keys(*ranges)) ranges->clear();
  }
  if (ranges->empty()) ranges->emplace_back();
  return ranges;
}

absl::Status Migration::ComparePass(Verifier& verifier, const std::vector<UnitRange>& ranges) {
  const auto stop = [this] {
    if (stopping() || (drainer_ && !drainer_->status().ok())) return true;
    const MutexLock lock(mutex_);
    return (record_.wanted == Wanted::kCancel && !on_target_ && !cancel_waits_) ||
           record_.wanted == Wanted::kAbandon;
  };
  verifier_ = &verifier;
  std::atomic<size_t> next{0};
  FirstFailure failure;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < std::min<size_t>(record().threads, ranges.size()); ++t) {
    threads.emplace_back([&, limits = CallScope::Current()] {
      const CallScope scope(limits);
      for (size_t i = next++; i < ranges.size(); i = next++) {
        absl::Status status = verifier.Compare(ranges[i], stop);
        if (status.ok()) continue;
        failure.Add(status);
        return;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  {
    // Under the lock, so that record() does not use a verifier that is about to be destroyed.
    const MutexLock lock(mutex_);
    verifier_ = nullptr;
  }
  return failure.status();
}

absl::Status Migration::Verify() {
  if (!record().doubt.empty()) return AwaitResolve();
  const auto waits = CancelMustWait();
  if (!waits.ok()) return waits.status();
  cancel_waits_ = *waits;
  const auto mode = ChooseVerifyMode();
  if (!mode.ok()) return mode.status();
  if (!mode->drains) {
    drainer_.reset();
  } else if (!drainer_) {
    drainer_ = std::make_unique<Drainer>(*copier_);
  }
  const auto ranges = RangesOfBothSides();
  if (!ranges.ok()) return ranges.status();
  for (uint64_t pass = 1;; ++pass) {
    Verifier verifier(*copier_, mode->repairs ? Verifier::Mode::kRepair : Verifier::Mode::kCount);
    const absl::Status compared = ComparePass(verifier, *ranges);
    if (drainer_) {
      if (auto status = drainer_->status(); !status.ok()) return status;
    }
    const Record now = record();
    if (stopping() || (now.wanted == Wanted::kCancel && !on_target_ && !cancel_waits_)) {
      return absl::OkStatus();
    }
    if (now.wanted == Wanted::kAbandon) {
      retake_ = true;
      return absl::OkStatus();
    }
    if (!compared.ok()) return compared;
    // The result only counts if the truth's hosts are still those that this worker took over.
    if (auto status = CheckTruth(); !status.ok()) return status;
    if (auto status = EndPass(verifier, mode->repairs); !status.ok()) return status;
    Reached("verify.pass");
    if (verifier.differences() == 0 || !mode->repairs) return absl::OkStatus();
    if (pass == kMaxPasses) {
      return absl::InternalError(
          fmt::format("both sides still differ after {} passes of verification", pass));
    }
  }
}

absl::Status Migration::EndPass(const Verifier& verifier, bool repairs) {
  const bool clean = verifier.differences() == 0;
  if (clean && record().crossed) {
    if (auto status = ClearCopyLog(); !status.ok()) return status;
  }
  std::string found = fmt::format("{} units compared, {} differed, {} copied again", verifier.compared(),
                                  verifier.differences(), verifier.repaired());
  std::string doubt;
  if (!clean && !repairs) {
    const std::string& truth = on_target_ ? names_.target : names_.source;
    const std::string& copy = on_target_ ? names_.source : names_.target;
    doubt = fmt::format("of {} units {} differ, {} of them are on '{}' only and not on '{}', which serves",
                        verifier.compared(), verifier.differences(), verifier.only_in_copy(), copy, truth);
    std::string_view before = "; for example ";
    for (const std::string& key : verifier.examples()) {
      doubt += fmt::format("{}{}", before, ShowUnitKey(spec_.shape, key));
      before = ", ";
    }
  }
  return Change(
      [&](Record& record) {
        ++record.passes;
        record.compared_units = verifier.compared();
        record.differences += verifier.differences();
        record.repaired += verifier.repaired();
        record.doubt = doubt;
        // An operator has to repeat what was requested, once it is known which side is right.
        if (!doubt.empty()) record.ClearWantedUnlessAbandon();
        if (clean) {
          record.phase = RestingPhase();
          // The boot IDs from before the comparison began: a host that was restarted since is compared again.
          record.verified = boot_ids_;
          record.trusted.clear();
          record.shadow.open = 0;
          record.shadow.examples.clear();
        }
        record.problem.clear();
      },
      doubt.empty() ? found : found + ": " + doubt);
}

absl::Status Migration::ClearCopyLog() {
  for (;;) {
    const auto entries = copy().ReadDirty(1000);
    if (!entries.ok()) return entries.status();
    if (entries->empty()) return absl::OkStatus();
    if (auto status = copy().RemoveDirty(epoch_, *entries); !status.ok()) return status;
  }
}

absl::Status Migration::AwaitResolve() {
  drainer_.reset();
  while (!stopping()) {
    const Record now = record();
    const std::string& truth = on_target_ ? names_.target : names_.source;
    if (now.wanted == Wanted::kResolve && now.keep == truth) {
      // The truth is trusted as it is now; if a host loses something after this, it is not trusted any more.
      return ActOnRequest(
          now.wanted,
          [&](Record& record) {
            record.trusted = boot_ids_;
            record.doubt.clear();
            record.wanted = Wanted::kNothing;
          },
          fmt::format("the copy is made like '{}'", truth));
    }
    if (now.wanted == Wanted::kResolve) {
      // The truth returns to the other side, although the sides differ.
      return ActOnRequest(
          now.wanted,
          [&](Record& record) {
            record.phase = Phase::kCutover;
            record.verified = boot_ids_;
            // The side that serves then is trusted without a comparison, and the other one is made like it.
            record.trusted = boot_ids_;
            record.doubt.clear();
            record.wanted = Wanted::kNothing;
          },
          fmt::format("cutover to '{}' begins, with what it has", now.keep));
    }
    if (now.wanted == Wanted::kVerify) {
      return ActOnRequest(
          now.wanted,
          [](Record& record) {
            record.doubt.clear();
            record.wanted = Wanted::kNothing;
          },
          "both sides are compared again");
    }
    if (now.wanted == Wanted::kAbandon) {
      retake_ = true;
      return absl::OkStatus();
    }
    const auto changed = HasChanged();
    if (!changed.ok()) return changed.status();
    if (*changed) {
      retake_ = true;
      return absl::OkStatus();
    }
    WaitForRequest(kCheckSidesInterval);
  }
  return absl::OkStatus();
}

}  // namespace kvstore::migration
