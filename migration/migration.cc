#include "migration/migration.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "migration/fail_point.h"

namespace kvstore::migration {
namespace {

using Clock = std::chrono::steady_clock;
using State = EndpointState;
using std::chrono::milliseconds;

constexpr milliseconds kRetry{500};
constexpr milliseconds kLook{50};
constexpr milliseconds kCheckpoint{1000};
/// How long a cutover waits for the dirty log to become short.
constexpr std::chrono::seconds kShortLog{30};
/// Local IDs that the target is raised above those of the source before the freeze: to do it costs more than
/// the gap that it leaves.
constexpr uint64_t kLocalIdMargin = 4096;
/// Passes of verification, after which it is said that it does not come to an end.
constexpr uint64_t kMaxPasses = 20;

uint64_t Milliseconds(Clock::duration duration) {
  return static_cast<uint64_t>(std::chrono::duration_cast<milliseconds>(duration).count());
}

std::string Text(const absl::Status& status) { return std::string(status.message()); }

}  // namespace

absl::StatusOr<std::unique_ptr<Migration>> Migration::Open(Router& router, std::string_view dataset) {
  CatalogRecord stored;
  absl::Status status = router.WithCatalog([&](Catalog& catalog) {
    auto found = catalog.GetRecord(dataset);
    if (found.ok()) stored = *std::move(found);
    return found.status();
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
  absl::Status status = router_.WithCatalog([&](Catalog& catalog) {
    const auto version = catalog.PutRecord(record_.dataset, Encode(record_), version_);
    if (version.ok()) version_ = *version;
    return version.status();
  });
  if (!absl::IsUnavailable(status)) return status;
  // It may have been written: then this is the record that is there.
  absl::Status looked = router_.WithCatalog([&](Catalog& catalog) {
    const auto stored = catalog.GetRecord(record_.dataset);
    if (!stored.ok()) return stored.status();
    if (stored->text != Encode(record_)) return status;
    version_ = stored->version;
    return absl::OkStatus();
  });
  return looked.ok() ? looked : status;
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
  throttle_.Set(limits);
  return Change([&](Record& record) { record.limits = limits; },
                fmt::format("limits: {} units/s, {} bytes/s, {} % of the time", limits.units_per_s,
                            limits.bytes_per_s, limits.share),
                std::move(who));
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
    case Phase::kCreated:
      return Enter(Phase::kPrepare, "started");
    case Phase::kPrepare:
      return Prepare();
    case Phase::kBackfill:
      return Backfill();
    case Phase::kVerify:
      return Verify();
    case Phase::kReady:
    case Phase::kReversible:
      return Follow();
    case Phase::kCutover:
      return Cutover();
    case Phase::kFinishing:
      return Finish();
    case Phase::kAborting:
      return Abort();
    case Phase::kFinished:
    case Phase::kAborted:
      break;
  }
  return absl::OkStatus();
}

absl::Status Migration::Prepare() {
  Reached("prepare.begin");
  if (auto status = ChangeEntry([&](CatalogEntry& entry) {
        entry.other_backend = names_.target;
        entry.other_engine = names_.target_engine;
      });
      !status.ok()) {
    return status;
  }
  Reached("prepare.named");
  const uint64_t epoch = epoch_;
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
    return record_.wanted == Wanted::kCancel || record_.paused;
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
        part.done = page->units == 0;
        part.units += page->units;
        part.bytes += page->bytes;
        if (page->units > 0) part.next = page->last;
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
  if (now.PartsDone() < now.parts.size()) {
    // Paused: what is copied is kept current.
    while (record().paused && !stopping() && record().wanted != Wanted::kCancel) {
      if (auto status = drainer_->status(); !status.ok()) return status;
      Wait(kLook);
    }
    return absl::OkStatus();
  }
  Reached("backfill.done");
  return Enter(Phase::kVerify, fmt::format("{} units are copied, in {:.1f} s", now.UnitsDone(),
                                           static_cast<double>(now.backfill_ms) / 1000));
}

absl::Status Migration::Verify() {
  if (!drainer_) drainer_ = std::make_unique<Drainer>(*copier_);
  const auto stop = [this] {
    if (stopping() || !drainer_->status().ok()) return true;
    const std::lock_guard lock(mutex_);
    return record_.wanted == Wanted::kCancel;
  };
  // Ranges of keys that both sides know; a shard is one of one side only.
  std::vector<UnitRange> ranges;
  for (MigrationEndpoint* const side : {source_.get(), target_.get()}) {
    auto partitions = side->Partitions(record().threads);
    if (!partitions.ok()) return partitions.status();
    const bool keys = std::all_of(partitions->begin(), partitions->end(),
                                  [](const UnitRange& range) { return range.shard.empty(); });
    if (keys && partitions->size() > ranges.size()) ranges = *std::move(partitions);
  }
  if (ranges.empty()) ranges.emplace_back();
  for (uint64_t pass = 1;; ++pass) {
    Verifier verifier(*copier_);
    verifier_ = &verifier;
    std::atomic<size_t> next{0};
    std::mutex failed_mutex;
    absl::Status failed;
    std::vector<std::thread> threads;
    for (size_t t = 0; t < std::min<size_t>(record().threads, ranges.size()); ++t) {
      threads.emplace_back([&] {
        for (size_t i = next++; i < ranges.size(); i = next++) {
          absl::Status status = verifier.Compare(ranges[i], stop);
          if (status.ok()) continue;
          const std::lock_guard lock(failed_mutex);
          if (failed.ok()) failed = status;
          return;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    verifier_ = nullptr;
    if (auto status = drainer_->status(); !status.ok()) return status;
    if (stopping() || record().wanted == Wanted::kCancel) return absl::OkStatus();
    if (!failed.ok()) return failed;
    const std::string found = fmt::format("{} units compared, {} differed, {} copied again",
                                          verifier.compared(), verifier.differences(), verifier.repaired());
    const bool clean = verifier.differences() == 0;
    if (auto status = Change(
            [&](Record& record) {
              ++record.passes;
              record.compared_units = verifier.compared();
              record.differences += verifier.differences();
              record.repaired += verifier.repaired();
              if (clean) record.phase = Resting();
              record.problem.clear();
            },
            found);
        !status.ok()) {
      return status;
    }
    Reached("verify.pass");
    if (clean) return absl::OkStatus();
    if (pass == kMaxPasses) {
      return absl::InternalError(
          fmt::format("both sides still differ after {} passes of verification", pass));
    }
  }
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

// ---- the cutover ----

absl::Status Migration::BackOut(const absl::Status& why) {
  if (absl::IsAborted(why)) return why;
  if (auto status = truth().Enter(epoch_, State::kServing, true); !status.ok()) return status;
  const std::string told = "the cutover was given up: " + Text(why);
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
    return MoveOver();
  }
  if (from->Any(State::kFrozen)) {
    // A worker before this one stopped here; nobody knows for how long writes have been held.
    return BackOut(absl::UnavailableError("it was interrupted"));
  }
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
    if (*drained <= names_.max_lag && Clock::now() - begun <= milliseconds(names_.freeze_ms) / 4) break;
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

  const auto closed_at = Clock::now();
  if (auto status = MoveOver(); !status.ok()) return status;
  const uint64_t writes = Milliseconds(routed_at_ - frozen_at);
  const uint64_t reads = Milliseconds(routed_at_ - closed_at);
  Change(
      [&](Record& record) {
        record.write_pause_ms = writes;
        record.read_pause_ms = reads;
      },
      fmt::format("writes were held for {} ms, reads for {} ms", writes, reads))
      .IgnoreError();
  return absl::OkStatus();
}

absl::Status Migration::MoveOver() {
  const uint64_t epoch = epoch_;
  if (auto status = truth().Enter(epoch, State::kMoved, true); !status.ok()) return status;
  Reached("cutover.moved");
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
  routed_at_ = Clock::now();
  Reached("cutover.routed");
  const auto entry = router_.LoadEntry(names_.dataset);
  if (!entry.ok()) return entry.status();
  absl::Status status = Change(
      [&](Record& record) {
        record.on_target = to_target;
        record.phase = to_target ? Phase::kReversible : Phase::kReady;
        record.automatic = false;
        record.problem.clear();
        // A rollback goes on with the removal of the target.
        const bool rolls_back = record.wanted == Wanted::kRollback || record.wanted == Wanted::kCancel;
        record.wanted = rolls_back && !to_target ? Wanted::kCancel : Wanted::kNothing;
      },
      fmt::format("'{}' serves", to_target ? names_.target : names_.source));
  if (!status.ok()) return status;
  Reached("cutover.recorded");
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
  if (auto status = ChangeEntry([](CatalogEntry& entry) {
        entry.other_backend.clear();
        entry.other_engine.clear();
      });
      !status.ok()) {
    return status;
  }
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
  if (auto status = ChangeEntry([](CatalogEntry& entry) {
        entry.other_backend.clear();
        entry.other_engine.clear();
      });
      !status.ok()) {
    return status;
  }
  Reached("abort.routed");
  return End(Phase::kAborted, "cancelled: the target is gone");
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
