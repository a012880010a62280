#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "backup/manifest.h"
#include "base/metrics_sink.h"
#include "base/mutex.h"
#include "blobstore/blob_store.h"
#include "kvstore_api/types.h"

namespace kvstore::backup {

struct ScheduleOptions {
  uint64_t every_ms = 6 * uint64_t{3'600'000};  ///< From the beginning of one backup to that of the next.
  size_t keep = 0;                              ///< So many backups are kept; 0: none is pruned.
  uint64_t retry_ms = 300'000;                  ///< From a failure to the next attempt; at most every_ms.
  /// Called with a line for people: about each backup, and about each failure with the age of the last good
  /// one. May be null.
  std::function<void(bool is_problem, const std::string& line)> log;
};

/// Makes a backup in an opened destination (CreateBackup, CreateHostBackup). `progress` may be null.
using BackupMaker = std::function<absl::StatusOr<Manifest>(BlobStore& blobs, const Progress& progress)>;

/// Makes backups from time to time, in a thread of its own. The backups in the destination decide when: after
/// a restart, the next backup is due when it would have been without. Thread-safe.
class Schedule {
 public:
  /// Opens the destination. Called before each backup, so that one that is away when a server starts does not
  /// keep it from serving.
  using Opener = std::function<absl::StatusOr<std::unique_ptr<BlobStore>>()>;

  /// Starts the thread. All that the functions use must outlive this.
  Schedule(BackupMaker make, Opener open, ScheduleOptions options);
  /// Stops it; returns when the call that the thread is in has ended.
  ~Schedule();
  /// Tells the thread to stop, and does not wait until it has.
  void Stop();
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  /// The counts since this schedule was made, and the results of its last attempts.
  struct Figures {
    uint64_t backups = 0;
    uint64_t failures = 0;
    uint64_t prune_failures = 0;
    uint64_t sent_bytes = 0;
    uint64_t last_good_ms = 0;      ///< When the last good backup began, ms since 1970; 0: none is known.
    absl::Status last_error;        ///< The result of the last attempt to make a backup; OK if it succeeded.
    absl::Status last_prune_error;  ///< The result of the last prune; OK if it succeeded.
  };
  Figures figures() const;
  /// Tells MakeNow what to do while another backup is being made.
  enum class WhenBusy : uint8_t {
    kWait,    ///< Waits for its end, which may take hours.
    kRefuse,  ///< Returns FAILED_PRECONDITION at once.
  };
  /// Makes a backup now, in the thread of the caller, whose limits hold; it counts as one that was due.
  ///
  /// blobs     the destination, opened.
  /// progress  As of CreateBackup.
  absl::StatusOr<Manifest> MakeNow(BlobStore& blobs, const Progress& progress, WhenBusy when_busy);
  void Describe(MetricsSink& sink) const;

 private:
  /// Makes a backup and counts it; making_ is held.
  absl::StatusOr<Manifest> Make(BlobStore& blobs, const Progress& progress);
  void Run();
  /// Makes a backup if one is due, and returns how long to wait for the next one, in ms.
  absl::StatusOr<uint64_t> Round();
  /// How long to wait until a backup is due after one that began then; 0: it is due.
  uint64_t DueIn(uint64_t last_ms) const;
  void Prune(BlobStore& blobs);
  void Failed(const absl::Status& status);
  /// CANCELLED if it is to stop.
  absl::Status Sleep(std::chrono::milliseconds time);

  const BackupMaker make_;
  const Opener open_;
  const ScheduleOptions options_;
  const uint64_t started_ms_;
  std::mutex making_;  // held while a backup is made, so that one that is due waits for another
  std::atomic<bool> stopping_{false};  // written with mutex_ held, so that no sleeper misses it
  mutable Mutex mutex_;
  std::condition_variable stopped_;
  Figures figures_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // the last member: it uses all others
};

}  // namespace kvstore::backup
