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
  /// Of two sides that differ, the backend that is right; Record::doubt says why somebody must say it.
  absl::Status Resolve(std::string keep, std::string who);
  /// The backend that will never be back: the migration ends without it.
  absl::Status Abandon(std::string gone, std::string who);
  absl::Status SetLimits(const Limits& limits, std::string who);

  Record record() const;
  /// Of the side that is the truth; none if it cannot be told.
  std::optional<DirtyLag> Lag() const;

 private:
  Migration(Router& router, Record record, int64_t version);

  // ---- migration_takeover.cc ----

  /// Claims the migration: a new epoch, on both sides, which are brought to where its phase has them.
  absl::Status TakeOver();
  /// Opens both sides as the catalog describes the dataset now. NOT_FOUND if it is gone.
  absl::Status OpenSides();
  /// Takes in the partitions that there are now, unless a step is under way that began with others.
  absl::Status FixExtents();
  /// Whether a phase that has partly been gone through can be left, or ended, without the side that is no
  /// truth.
  ///
  /// same_truth  Its hosts are those of when both sides were last found the same.
  bool GoesOnAlone(const EndpointStatus& truth, bool same_truth) const;
  /// Whether the hosts of the truth, or of the other side, are those of when both were last found the same.
  /// Asks them.
  bool IsAsVerified(bool of_truth);
  /// A cutover that opened the other side everywhere before the side that it leaves was lost.
  absl::Status TakeOverOpened(const EndpointStatus& opened);
  /// As the ledger has it.
  Operation AsOperation() const;
  /// Takes it over in the ledger.
  absl::Status BeginOperation();
  /// Writes down the claim.
  absl::Status Claim(uint64_t epoch);
  /// Under the epoch: brings both sides to the states that they have between two steps.
  absl::Status ReassertSides(const EndpointStatus& copy);
  /// Reads what both sides stand on.
  absl::Status LookAtBoots();
  void NoteTruthBoot();
  /// Whether the side that is the truth may have lost what it had when both were last found the same.
  bool TruthWasReplaced() const;
  bool CopyWasReplaced() const;
  /// OK while the truth is what it was when this worker took over.
  absl::Status CheckTruth();
  /// Whether partitions appeared, or a host was restarted or replaced, since it took over.
  absl::StatusOr<bool> HasChanged();
  /// Whether the record is another worker's, or gone. In doubt: no.
  bool Overtaken();
  /// The dataset of a migration that was never started is gone, or is another one.
  absl::Status EndOrphan();
  /// Ends it without the side that will never be back.
  absl::Status EndWithout();
  void NewCopier(Shape shape);

  absl::Status RunPhase();
  absl::Status Prepare();
  absl::Status Backfill();
  /// Tells the throttle what a read takes now.
  absl::Status Probe();
  absl::Status Verify();
  /// Writes down what a pass found.
  absl::Status EndPass(const Verifier& verifier, bool repairs);
  /// Both sides are the same: what the log of the copy has says nothing any more.
  absl::Status ForgetStrayed();
  /// Waits for an operator to say which side is right.
  absl::Status AwaitResolve();
  absl::Status Follow();
  absl::Status Cutover();
  /// From where writes are held and all is copied to where the other side serves.
  ///
  /// opened  Whether it serves in part already.
  absl::Status MoveOver(bool opened);
  /// A cutover that a worker before this one began; none of this one's.
  absl::StatusOr<bool> GoOnWithCutover();
  /// Gives the cutover up, for an operator to say which side is right.
  absl::StatusOr<bool> Doubt(const std::string& why);
  /// All that takes time, while writes go on.
  absl::Status Arm();
  /// Holds writes, and copies the rest.
  absl::Status Freeze();
  /// The catalog, and the record, name the side that serves now.
  absl::Status Route();
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
  /// Whether it has come to its end.
  bool IsOver() const;
  bool stopping() const { return stop_.load(std::memory_order_relaxed); }
  /// Until the time is over or something is asked for.
  void Wait(std::chrono::milliseconds time);
  /// Fenced by the record. UNAVAILABLE if it could not be changed for now.
  absl::Status ChangeEntry(const std::function<absl::Status(CatalogEntry&)>& change);
  int64_t version() const {
    const std::lock_guard lock(mutex_);
    return version_;
  }

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
  std::string boots_;       // of both sides, when this worker took over
  std::string truth_boot_;  // the part of the truth; read by copying threads, which it outlives
  DatasetSpec spec_;        // as the sides were opened with
  std::string operation_;   // its ID in the ledger; empty: it was not begun there
  bool alone_ = false;      // the other side is not reachable, and not needed for what is to be done
  bool retake_ = false;     // what it took over has changed: it begins again, and nothing is wrong
  /// Since when clients wait for a cutover that goes on; none where a worker before this one began it.
  struct Held {
    std::chrono::steady_clock::time_point writes;
    std::chrono::steady_clock::time_point reads;
  };
  std::optional<Held> held_;
  std::string verified_;  // Record::verified, for a cutover, which must not wait for who writes the record
  std::shared_ptr<MigrationEndpoint> source_;  // of the present epoch; Run's thread changes them under mutex_
  std::shared_ptr<MigrationEndpoint> target_;
  std::unique_ptr<Copier> copier_;    // of the present direction, under the present epoch
  std::unique_ptr<Drainer> drainer_;  // while it is kept current
  std::atomic<Verifier*> verifier_{nullptr};
};

}  // namespace kvstore::migration
