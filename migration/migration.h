#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kvstore_api/router.h"
#include "migration/copier.h"
#include "migration/record.h"
#include "migration/throttle.h"
#include "migration/verifier.h"

namespace kvstore::migration {

/// One dataset's way from backend to backend: the state machine of docs/migrating.md, run by one thread. Each
/// step is written down before it is done, and may be done again: a process that dies at any instruction is
/// followed by another, which begins with Open.
///
/// Run has a thread of its caller; the rest may be called by any thread.
class Migration {
 public:
  /// Loads the record. NOT_FOUND if the dataset does not migrate. The router must outlive it.
  static absl::StatusOr<std::unique_ptr<Migration>> Open(Router& router, std::string_view dataset);

  /// A migration that was created is to be run: written down when it returns OK, and then Run does it, here
  /// or elsewhere.
  absl::Status Begin(std::string who);
  /// Does what is to be done, until the migration is at its end or Stop is called: OK. Troubles are waited
  /// out and tried again, and stand in the record's `problem`. ABORTED: another worker has taken over.
  absl::Status Run();
  /// Run ends soon, between two steps.
  void Stop();

  /// What an operator asks for; checked by CheckCommand before. Written down when it returns OK.
  absl::Status Ask(Wanted wanted, std::string who);
  absl::Status Pause(bool paused, std::string who);
  absl::Status SetLimits(const Limits& limits, std::string who);

  Record record() const;
  /// Of the side that is the truth; none if it cannot be told.
  std::optional<DirtyLag> Lag() const;

 private:
  Migration(Router& router, Record record, int64_t version);

  /// Claims the migration: a new epoch, on both sides.
  absl::Status TakeOver();
  absl::Status RunPhase();
  absl::Status Prepare();
  absl::Status Backfill();
  /// Tells the throttle what a read takes now.
  absl::Status Probe();
  absl::Status Verify();
  absl::Status Follow();
  absl::Status Cutover();
  /// From where writes are held and all is copied to where the other side serves.
  ///
  /// opened  Whether it serves in part already.
  absl::Status MoveOver(bool opened);
  absl::Status BackOut(const absl::Status& why);
  absl::Status Finish();
  absl::Status Abort();
  /// The dataset migrates no more.
  absl::Status LeaveCatalog();
  absl::Status End(Phase phase, std::string event);

  MigrationEndpoint& truth() { return on_target_ ? *target_ : *source_; }
  MigrationEndpoint& copy() { return on_target_ ? *source_ : *target_; }
  /// What both sides stand on.
  static absl::StatusOr<std::string> Boots(MigrationEndpoint& source, MigrationEndpoint& target);
  /// Compares again, where what was found the same may not be so any more. Whether that was begun.
  absl::StatusOr<bool> VerifyAgain(const std::string& boots);
  Phase Resting() const { return on_target_ ? Phase::kReversible : Phase::kReady; }

  /// Changes the record and writes it down; with `event`, one line more.
  absl::Status Change(const std::function<void(Record&)>& change, std::string event = {},
                      std::string who = "worker");
  /// Writes down how far it is; failures do not matter.
  void Checkpoint();
  absl::Status Save();
  absl::Status Enter(Phase phase, std::string event);
  bool stopping() const { return stop_.load(std::memory_order_relaxed); }
  /// Until the time is over or something is asked for.
  void Wait(std::chrono::milliseconds time);
  absl::Status ChangeEntry(const std::function<void(CatalogEntry&)>& change);

  Router& router_;
  const Record names_;  // as it was loaded, for what does not change
  mutable std::mutex mutex_;
  std::condition_variable asked_;
  Record record_;        // guarded by mutex_; written by Run's thread and by what is asked
  int64_t version_ = 0;  // of the record in the catalog; guarded by mutex_
  Throttle throttle_;
  std::atomic<bool> stop_{false};

  // Of Run's thread; what others read of it, under mutex_.
  bool on_target_ = false;
  bool fresh_ = false;  // nothing of the target was written by a worker before
  uint64_t epoch_ = 0;
  std::string boots_;  // of both sides, when this worker took over
  /// Since when clients wait for a cutover that goes on; none where a worker before this one began it.
  struct Held {
    std::chrono::steady_clock::time_point writes;
    std::chrono::steady_clock::time_point reads;
  };
  std::optional<Held> held_;
  std::shared_ptr<MigrationEndpoint> source_;  // of the present epoch; Run's thread changes them under mutex_
  std::shared_ptr<MigrationEndpoint> target_;
  std::unique_ptr<Copier> copier_;    // of the present direction, under the present epoch
  std::unique_ptr<Drainer> drainer_;  // while it is kept current
  std::atomic<Verifier*> verifier_{nullptr};
};

}  // namespace kvstore::migration
