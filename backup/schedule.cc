#include "backup/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backup/list.h"
#include "backup/prune.h"
#include "base/clock.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::backup {
namespace {

/// The next backup is waited for in steps of this, because the wall clock may be set meanwhile.
constexpr uint64_t kMaxWaitMs = 60'000;
/// A backup that began later than this from now was made by a clock that was wrong, so that it does not say
/// when the next one is due. Clocks of two machines may differ by less.
constexpr uint64_t kClocksDifferMs = 60'000;

std::string HoursText(uint64_t ms) { return fmt::format("{:.1f} h", static_cast<double>(ms) / 3'600'000); }

}  // namespace

Schedule::Schedule(BackupMaker make, Opener open, ScheduleOptions options)
    : make_(std::move(make)),
      open_(std::move(open)),
      options_(std::move(options)),
      started_ms_(WallClockMs()),
      thread_([this] { Run(); }) {}

Schedule::~Schedule() {
  Stop();
  thread_.join();
}

void Schedule::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
}

Schedule::Figures Schedule::figures() const {
  const MutexLock lock(mutex_);
  return figures_;
}

void Schedule::Describe(MetricsSink& sink) const {
  const Figures figures = this->figures();
  const uint64_t now = WallClockMs();
  // A server that has never made a backup is alarming after a while, too, and so is one that knows of none
  // but one that a wrong clock has made.
  const bool is_known = figures.last_good_ms != 0 && figures.last_good_ms <= now + kClocksDifferMs;
  const uint64_t since = is_known ? figures.last_good_ms : started_ms_;
  sink.Gauge("kvstore_backup_age_seconds",
             "Time since the last good backup began; since the start of the server if none is known", {},
             static_cast<double>(now - std::min(now, since)) / 1000);
  sink.Gauge("kvstore_backup_failing", "1 if the last attempt to make a backup has failed", {},
             figures.last_error.ok() ? 0 : 1);
  sink.Counter("kvstore_backups_total", "Backups that were made", {}, static_cast<double>(figures.backups));
  sink.Counter("kvstore_backup_failures_total", "Backups that have failed", {},
               static_cast<double>(figures.failures));
  sink.Gauge("kvstore_backup_prune_failing", "1 if the last prune of backups has failed", {},
             figures.last_prune_error.ok() ? 0 : 1);
  sink.Counter("kvstore_backup_prune_failures_total", "Prunes of backups that have failed", {},
               static_cast<double>(figures.prune_failures));
  sink.Counter("kvstore_backup_sent_bytes_total", "Bytes that backups have sent", {},
               static_cast<double>(figures.sent_bytes));
}

void Schedule::Run() {
  const CallScope scope(CallLimits{.cancelled = &stopping_});
  uint64_t wait_ms = 0;
  while (Sleep(std::chrono::milliseconds(wait_ms)).ok()) {
    const auto next = Round();
    if (!CheckCall().ok()) return;
    if (!next.ok()) Failed(next.status());
    wait_ms = next.ok() ? std::min(*next, kMaxWaitMs) : std::min(options_.retry_ms, options_.every_ms);
  }
}

uint64_t Schedule::DueIn(uint64_t last_ms) const {
  const uint64_t now = WallClockMs();
  if (last_ms == 0 || last_ms > now + kClocksDifferMs || last_ms + options_.every_ms <= now) return 0;
  return last_ms + options_.every_ms - now;
}

absl::StatusOr<uint64_t> Schedule::Round() {
  uint64_t last = figures().last_good_ms;
  if (const uint64_t wait_ms = DueIn(last); wait_ms > 0) return wait_ms;
  const auto blobs = open_();
  if (!blobs.ok()) return blobs.status();
  if (last == 0) {
    const auto newest = NewestBackup(**blobs);
    if (!newest.ok() && !absl::IsNotFound(newest.status())) return newest.status();
    if (newest.ok()) {
      // One that cannot be read is no good backup, and is followed by another at once.
      if (const auto manifest = ReadManifest(**blobs, *newest); manifest.ok()) last = manifest->began_ms;
      const MutexLock lock(mutex_);
      figures_.last_good_ms = last;
    }
    if (const uint64_t wait_ms = DueIn(last); wait_ms > 0) return wait_ms;
  }
  {
    const std::lock_guard lock(making_);
    // One may have been made meanwhile.
    if (const uint64_t wait_ms = DueIn(figures().last_good_ms); wait_ms > 0) return wait_ms;
    if (const auto made = Make(**blobs, nullptr); !made.ok()) return made.status();
  }
  if (options_.keep > 0) Prune(**blobs);
  return options_.every_ms;
}

absl::StatusOr<Manifest> Schedule::MakeNow(BlobStore& blobs, const Progress& progress, WhenBusy when_busy) {
  std::unique_lock lock(making_, std::try_to_lock);
  if (!lock.owns_lock() && when_busy == WhenBusy::kRefuse) {
    return absl::FailedPreconditionError(
        "a backup is being made already, because one was due; kv backup list shows it when it is complete");
  }
  if (!lock.owns_lock()) lock.lock();
  return Make(blobs, progress);
}

absl::StatusOr<Manifest> Schedule::Make(BlobStore& blobs, const Progress& progress) {
  auto made = make_(blobs, progress);
  if (!made.ok()) return made;
  {
    const MutexLock lock(mutex_);
    ++figures_.backups;
    figures_.sent_bytes += made->sent_bytes;
    figures_.last_good_ms = made->began_ms;
    figures_.last_error = absl::OkStatus();
  }
  if (options_.log) {
    options_.log(false, fmt::format("backup {}: {} bytes, of which {} were sent, in {:.1f} s", made->id,
                                    made->TotalBytes(), made->sent_bytes,
                                    static_cast<double>(made->finished_ms - made->began_ms) / 1000));
  }
  return made;
}

void Schedule::Prune(BlobStore& blobs) {
  const absl::Status pruned = PruneBackups(blobs, options_.keep).status();
  if (!CheckCall().ok()) return;
  {
    const MutexLock lock(mutex_);
    figures_.last_prune_error = pruned;
    if (!pruned.ok()) ++figures_.prune_failures;
  }
  if (pruned.ok() || !options_.log) return;
  options_.log(true, fmt::format("the backup is made, and old ones could not be pruned: {}; the next backup "
                                 "tries again",
                                 pruned.ToString()));
}

void Schedule::Failed(const absl::Status& status) {
  uint64_t last_good = 0;
  {
    const MutexLock lock(mutex_);
    ++figures_.failures;
    figures_.last_error = status;
    last_good = figures_.last_good_ms;
  }
  if (!options_.log) return;
  const uint64_t now = WallClockMs();
  options_.log(true, fmt::format("the backup has failed: {}; {}", status.ToString(),
                                 last_good == 0 ? std::string("no good one is known")
                                                : fmt::format("the last good one is {} old",
                                                              HoursText(now - std::min(now, last_good)))));
}

absl::Status Schedule::Sleep(std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (lock.WaitUntil(stopped_, until)) break;
  }
  return CheckCall();
}

}  // namespace kvstore::backup
