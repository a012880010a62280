#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fail_point.h"
#include "kvstore_api/unit_key.h"
#include "migration/migration.h"

/// From the start to where both sides are the same: prepare, backfill, verify.
namespace kvstore::migration {
namespace {

using Clock = std::chrono::steady_clock;
using State = EndpointState;
using std::chrono::milliseconds;

constexpr milliseconds kLook{50};
constexpr milliseconds kCheckpoint{1000};
/// Passes of verification, after which it is said that it does not come to an end.
constexpr uint64_t kMaxPasses = 20;

}  // namespace

absl::Status Migration::Prepare() {
  Reached("prepare.begin");
  if (auto status = ChangeEntry([&](CatalogEntry& entry) -> absl::Status {
        // The sides were opened with these settings, which nobody changes from here on.
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
  // What an earlier migration left there, which was ended without this side, is not what is copied now.
  const auto left = target_->Status();
  if (!left.ok()) return left.status();
  if (left->Any(State::kMoved) || left->Any(State::kImporting)) {
    if (auto status = target_->Enter(epoch, State::kAbsent, false); !status.ok()) return status;
    // The state of the worker's epoch went with it.
    if (auto status = target_->RaiseEpoch(epoch); !status.ok()) return status;
  }
  if (auto status = target_->Enter(epoch, State::kImporting, false); !status.ok()) return status;
  // Whether it could serve, once: what it lacks for that is said now, and not at the cutover.
  if (auto status = target_->Enter(epoch, State::kImporting, true); !status.ok()) return status;
  if (auto status = target_->Enter(epoch, State::kImporting, false); !status.ok()) return status;
  Reached("prepare.target");
  // What the target lacks of the source's shards is said now, and not when rows are copied.
  const auto ids = source_->NextLocalIds();
  if (!ids.ok()) return ids.status();
  if (auto status = target_->RaiseLocalIds(epoch, *ids); !status.ok()) return status;
  if (auto status = source_->Enter(epoch, State::kServing, true); !status.ok()) return status;
  Reached("prepare.capture");
  const auto ranges = source_->Partitions(size_t{4} * record_.threads);
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

absl::Status Migration::Backfill() {
  drainer_ = std::make_unique<Drainer>(*copier_);
  const uint64_t before_ms = record().backfill_ms;
  const auto begin = Clock::now();
  std::atomic<size_t> next{0};
  std::mutex failed_mutex;
  absl::Status failed;
  std::atomic<bool> ended{false};
  const auto fail = [&](const absl::Status& status) {
    const std::lock_guard lock(failed_mutex);
    if (failed.ok()) failed = status;
    ended = true;
  };
  const auto wanted = [&] {
    const std::lock_guard lock(mutex_);
    return record_.wanted == Wanted::kCancel || record_.wanted == Wanted::kAbandon || record_.paused;
  };
  const auto copy_part = [&](size_t i) -> absl::Status {
    UnitRange range;
    {
      const std::lock_guard lock(mutex_);
      if (record_.parts[i].done) return absl::OkStatus();
      range = record_.parts[i].range;
      if (!record_.parts[i].next.empty()) range.start = record_.parts[i].next;
    }
    auto scan = truth().Scan(range, WallClockMs());
    if (!scan.ok()) return scan.status();
    while (!ended && !stopping() && !wanted()) {
      const auto started = Clock::now();
      const auto page = copier_->CopyPage(**scan, fresh_);
      if (!page.ok()) return page.status();
      {
        const std::lock_guard lock(mutex_);
        Part& part = record_.parts[i];
        part.done = page->ended;
        part.units += page->units;
        part.bytes += page->bytes;
        if (!page->last.empty()) part.next = page->last;
        if (part.done) return absl::OkStatus();
      }
      const auto pause = throttle_.Pause(page->units, page->bytes, Clock::now() - started);
      if (pause > Clock::duration::zero()) std::this_thread::sleep_for(pause);
    }
    return absl::OkStatus();
  };
  size_t count = 0;
  uint32_t threads = 0;
  {
    const std::lock_guard lock(mutex_);
    count = record_.parts.size();
    threads = record_.threads;
  }
  std::atomic<size_t> running{std::min<size_t>(threads, count)};
  std::vector<std::thread> copiers;
  for (size_t t = 0; t < std::min<size_t>(threads, count); ++t) {
    copiers.emplace_back([&] {
      for (size_t i = next++; i < count && !ended && !stopping(); i = next++) {
        if (auto status = copy_part(i); !status.ok()) fail(status);
      }
      --running;
    });
  }
  auto saved = Clock::now();
  while (running > 0) {
    std::this_thread::sleep_for(kLook / 5);
    if (auto status = drainer_->status(); !status.ok()) fail(status);
    if (auto status = Probe(); !status.ok()) fail(status);
    if (Clock::now() - saved < kCheckpoint) continue;
    {
      const std::lock_guard lock(mutex_);
      record_.backfill_ms = before_ms + Milliseconds(Clock::now() - begin);
    }
    Checkpoint();
    Reached("backfill.checkpoint");
    saved = Clock::now();
  }
  for (std::thread& copier : copiers) copier.join();
  {
    const std::lock_guard lock(mutex_);
    record_.backfill_ms = before_ms + Milliseconds(Clock::now() - begin);
  }
  if (!failed.ok()) return failed;
  if (stopping()) return absl::OkStatus();
  const Record now = record();
  if (now.wanted == Wanted::kCancel) return absl::OkStatus();
  if (now.wanted == Wanted::kAbandon) {
    retake_ = true;
    return absl::OkStatus();
  }
  if (now.PartsDone() < now.parts.size()) {
    // Paused: what is copied is kept current.
    while (record().paused && !stopping() && record().wanted != Wanted::kCancel &&
           record().wanted != Wanted::kAbandon) {
      if (auto status = drainer_->status(); !status.ok()) return status;
      Wait(kLook);
    }
    return absl::OkStatus();
  }
  Reached("backfill.done");
  return Enter(Phase::kVerify, fmt::format("{} units are copied, in {:.1f} s", now.UnitsDone(),
                                           static_cast<double>(now.backfill_ms) / 1000));
}

absl::Status Migration::Probe() {
  if (throttle_.limits().max_read_us == 0) return absl::OkStatus();
  std::string key;
  {
    const std::lock_guard lock(mutex_);
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

absl::Status Migration::Verify() {
  if (!record().doubt.empty()) return AwaitResolve();
  // From the first cutover on both sides have what clients were told is written. The copy is made like the
  // truth only if it is the copy that may have lost something, and the truth has not; what differs else is
  // for an operator.
  const Record before = record();
  const bool trusted = before.trusted == boots_;
  // Clients wrote to the side that must not serve, in the belief that it did.
  bool strayed = false;
  if (before.crossed && !trusted) {
    const auto lag = copy().Lag();
    if (!lag.ok()) return lag.status();
    strayed = lag->entries > 0;
  }
  const bool repairs = !before.crossed || trusted || (CopyWasReplaced() && !TruthWasReplaced() && !strayed);
  // A drain would already make the copy what the truth is.
  const bool drains = repairs || (!TruthWasReplaced() && !strayed);
  if (!drains) {
    drainer_.reset();
  } else if (!drainer_) {
    drainer_ = std::make_unique<Drainer>(*copier_);
  }
  const auto stop = [this] {
    if (stopping() || (drainer_ && !drainer_->status().ok())) return true;
    const std::lock_guard lock(mutex_);
    return (record_.wanted == Wanted::kCancel && !on_target_) || record_.wanted == Wanted::kAbandon;
  };
  // Ranges that both sides know: of keys, or the same shards.
  auto ranges = source_->Partitions(record().threads);
  if (!ranges.ok()) return ranges.status();
  const auto others = target_->Partitions(record().threads);
  if (!others.ok()) return others.status();
  const auto keys = [](const std::vector<UnitRange>& some) {
    return std::all_of(some.begin(), some.end(), [](const UnitRange& range) { return range.shard.empty(); });
  };
  if (*ranges != *others) {
    if (!keys(*ranges) || (keys(*others) && others->size() > ranges->size())) ranges = *others;
    if (!keys(*ranges)) ranges->clear();
  }
  if (ranges->empty()) ranges->emplace_back();
  for (uint64_t pass = 1;; ++pass) {
    Verifier verifier(*copier_, repairs);
    verifier_ = &verifier;
    std::atomic<size_t> next{0};
    std::mutex failed_mutex;
    absl::Status failed;
    std::vector<std::thread> threads;
    for (size_t t = 0; t < std::min<size_t>(record().threads, ranges->size()); ++t) {
      threads.emplace_back([&] {
        for (size_t i = next++; i < ranges->size(); i = next++) {
          absl::Status status = verifier.Compare((*ranges)[i], stop);
          if (status.ok()) continue;
          const std::lock_guard lock(failed_mutex);
          if (failed.ok()) failed = status;
          return;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    {
      // Who shows how far it is has it no more.
      const std::lock_guard lock(mutex_);
      verifier_ = nullptr;
    }
    if (drainer_) {
      if (auto status = drainer_->status(); !status.ok()) return status;
    }
    const Record now = record();
    if (stopping() || (now.wanted == Wanted::kCancel && !on_target_)) return absl::OkStatus();
    if (now.wanted == Wanted::kAbandon) {
      retake_ = true;
      return absl::OkStatus();
    }
    if (!failed.ok()) return failed;
    // What was read is of the hosts that this worker took over, or it says nothing.
    if (auto status = CheckTruth(); !status.ok()) return status;
    if (auto status = EndPass(verifier, repairs); !status.ok()) return status;
    Reached("verify.pass");
    if (verifier.differences() == 0 || !repairs) return absl::OkStatus();
    if (pass == kMaxPasses) {
      return absl::InternalError(
          fmt::format("both sides still differ after {} passes of verification", pass));
    }
  }
}

absl::Status Migration::EndPass(const Verifier& verifier, bool repairs) {
  const bool clean = verifier.differences() == 0;
  if (clean && record().crossed) {
    if (auto status = ForgetStrayed(); !status.ok()) return status;
  }
  std::string found = fmt::format("{} units compared, {} differed, {} copied again", verifier.compared(),
                                  verifier.differences(), verifier.repaired());
  std::string doubt;
  if (!clean && !repairs) {
    const std::string& truth = on_target_ ? names_.target : names_.source;
    const std::string& copy = on_target_ ? names_.source : names_.target;
    doubt = fmt::format("of {} units {} differ, {} of them are on '{}' only and not on '{}', which serves",
                        verifier.compared(), verifier.differences(), verifier.only_in_copy(), copy, truth);
    for (const std::string& key : verifier.examples()) {
      doubt += fmt::format("{}{}", &key == &verifier.examples().front() ? "; for example " : ", ",
                           ShowUnitKey(spec_.shape, key));
    }
  }
  return Change(
      [&](Record& record) {
        ++record.passes;
        record.compared_units = verifier.compared();
        record.differences += verifier.differences();
        record.repaired += verifier.repaired();
        record.doubt = doubt;
        // What was asked for before is asked for again when it is known which side is right.
        if (!doubt.empty()) record.wanted = Wanted::kNothing;
        if (clean) {
          record.phase = Resting();
          // As they were before it was begun.
          record.verified = boots_;
          record.trusted.clear();
        }
        record.problem.clear();
      },
      doubt.empty() ? found : found + ": " + doubt);
}

absl::Status Migration::ForgetStrayed() {
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
      // What this worker stands on is to be believed; what is lost after that is not.
      return Change(
          [&](Record& record) {
            record.trusted = boots_;
            record.doubt.clear();
            record.wanted = Wanted::kNothing;
          },
          fmt::format("the copy is made like '{}'", truth));
    }
    if (now.wanted == Wanted::kResolve) {
      // The way back, without having been found the same.
      return Change(
          [&](Record& record) {
            record.phase = Phase::kCutover;
            record.verified = boots_;
            // Nobody has compared: what serves then is to be believed, and the other side is made like it.
            record.trusted = boots_;
            record.doubt.clear();
            record.wanted = Wanted::kNothing;
          },
          fmt::format("cutover to '{}' begins, with what it has", now.keep));
    }
    if (now.wanted == Wanted::kVerify) {
      return Change(
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
    Wait(milliseconds(1000));
  }
  return absl::OkStatus();
}

}  // namespace kvstore::migration
