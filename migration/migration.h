#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/migration_endpoint.h"
#include "base/mutex.h"
#include "catalog/deadline_mutex.h"
#include "migration/copier.h"
#include "migration/diagnosis.h"
#include "migration/record.h"
#include "migration/shadow_reads.h"
#include "migration/throttle.h"
#include "migration/verifier.h"
#include "router/catalog_keeper.h"

namespace kvstore::migration {

/// The migration of one dataset from one backend to another: the state machine of docs/migrating.md, which
/// one thread, the worker, runs. Each step is written into the record before it is done, and is idempotent:
/// when a process dies at any instruction, another one continues with Open.
///
/// A migration has two sides, source and target. At each time one of them is the truth, which serves clients,
/// and the other one is the copy.
///
/// Run blocks the worker's thread; everything else may be called by any thread.
class Migration {
 public:
  /// Loads the record. NOT_FOUND if the dataset does not migrate; DATA_LOSS if the record is damaged, or of a
  /// newer version. The keeper must outlive the migration.
  ///
  /// time  by which the limits of its rate hold.
  static absl::StatusOr<std::unique_ptr<Migration>> Open(CatalogKeeper& keeper, std::string_view dataset,
                                                         ThrottleTime time = {});

  /// Starts a migration that was created: the record says so when this returns OK, and Run then does the
  /// work, here or in another process. FAILED_PRECONDITION if it was started before.
  absl::Status Begin(std::string who);
  /// Changes the record and the catalog as a diagnosis says, but does not let a worker go on. ABORTED if
  /// another process changes the record meanwhile. Must not run beside Run.
  ///
  /// above  The highest epoch of both sides.
  absl::Status Mend(const Diagnosis& diagnosis, uint64_t above, const std::string& who);
  /// Works until the migration has ended or Stop is called, and then returns OK. A step that fails is retried
  /// every 500 ms, and Record::problem says why it failed. ABORTED: another worker has taken over.
  absl::Status Run();
  /// Makes Run return soon, between two steps.
  void Stop();
  /// As Stop, and cuts the calls of the worker that are in flight, for example to a server that hangs. What
  /// the worker was at is left as if its process had been killed: clients may wait until another process
  /// continues it.
  void Cancel();

  // Requests of operators (migration_requests.cc). They are recorded when a call returns OK, and carried out
  // later by the worker. `who` stands in the record's events. Callers check by CheckCommand that a request is
  // possible; those that set Record::wanted check it again, and fail with FAILED_PRECONDITION. While the
  // catalog does not answer they end with the limits of the thread's call (call_scope.h), and the record
  // stays as it was.

  absl::Status Request(Wanted wanted, std::string who);
  absl::Status Pause(bool paused, std::string who);
  /// Says which of two sides that differ is right: the backend `keep`. Record::doubt says why an operator
  /// must decide that.
  absl::Status Resolve(std::string keep, std::string who);
  /// Says that the backend `gone` will never be back: the migration ends without it.
  absl::Status Abandon(std::string gone, std::string who);
  /// change  returns the new limits for those in force.
  absl::Status SetLimits(const std::function<Limits(const Limits&)>& change, std::string who);

  /// Changes the share of reads that are made on both sides (ReadTaps::kAll), with effect within a second.
  absl::Status SetShadowShare(uint32_t share, std::string who);
  /// Requests a cutover that may begin although shadow reads have found differences.
  absl::Status RequestCutoverAllTheSame(std::string who);

  /// Returns a copy of the record, with progress that is newer than what is stored. Does not wait for the
  /// catalog.
  Record record() const;
  /// The version of the stored record, as this object knows it.
  int64_t stored_version() const { return version(); }
  /// Returns how much the copy lags behind the truth; nothing if the backend, which is asked, does not say
  /// within two seconds.
  std::optional<DirtyLag> Lag() const;

 private:
  /// How often the worker checks for failures of the drainer, and for what operators ask for.
  static constexpr std::chrono::milliseconds kPollInterval{50};
  /// How often the worker checks whether hosts were restarted and partitions appeared.
  static constexpr std::chrono::milliseconds kCheckSidesInterval{1000};

  Migration(CatalogKeeper& keeper, Record record, int64_t version, ThrottleTime time);

  // ---- takeover (migration_takeover.cc) ----

  /// Claims the migration: raises the epoch on both sides, and brings them to the states that the record's
  /// phase requires.
  absl::Status TakeOver();
  /// Opens both sides as the catalog describes the dataset now. NOT_FOUND if the dataset is gone.
  absl::Status OpenSides();
  /// Makes the migration cover the partitions that exist now, unless a step is under way that began with
  /// others.
  absl::Status RefreshExtents();
  /// Whether the phase can be left, or the migration ended, while the side that is not the truth cannot be
  /// reached.
  ///
  /// same_truth  The hosts of the truth are those of the last comparison that found both sides the same.
  bool CanProceedAlone(const EndpointStatus& truth, bool same_truth) const;
  /// Takes over a cutover that had opened the other side everywhere, or had found it complete, when the side
  /// that it leaves was lost.
  absl::Status TakeOverOpenedCutover(const EndpointStatus& opened);
  /// Ends a cutover that an earlier worker had brought as far as the catalog: clients use the other side,
  /// which the record does not say yet. Returns whether there was one; this worker then takes over again.
  /// After a claim the answer is final, since no earlier worker can change the catalog any more.
  absl::StatusOr<bool> AdoptRoutedCutover();
  /// The migration, as the ledger of operations has it.
  Operation AsOperation() const;
  /// Takes the operation over in the ledger.
  absl::Status BeginOperation();
  /// Stores the record once more: a worker that has slept since its claim, while another one went on, and
  /// perhaps ended the migration, is told so (ABORTED) before it changes what that one has left.
  absl::Status ConfirmClaim();
  /// Returns the name of this process in the catalog.
  absl::StatusOr<std::string> Self();
  /// Writes this process and its epoch into the record.
  ///
  /// change  changes the record in the same step; may be null.
  absl::Status Claim(uint64_t epoch, const std::function<void(Record&)>& change = nullptr);
  /// Returns the change of a record which follows from what both sides had before a worker claims it:
  /// whatever shows that the last comparison does not count any more. Null statuses are not known.
  std::function<void(Record&)> ForgetComparison(const EndpointStatus* truth, const EndpointStatus* copy);
  /// FAILED_PRECONDITION if a worker must not go on as the record says (FindContradiction). Changes nothing.
  ///
  /// copy  null if it cannot be asked.
  absl::Status CheckSidesFit(const EndpointStatus& truth, const EndpointStatus* copy);
  /// CheckSidesFit, with what both sides say now.
  absl::Status CheckSidesFitNow();
  /// Brings both sides to the states that they have between two steps. Needs the epoch on both.
  absl::Status ReassertSides();
  /// Whether the record belongs to another worker, or is gone. False if that cannot be found out.
  bool WasOvertaken();
  /// Ends a migration whose dataset is gone, or has been replaced by another one of the same name. Only
  /// possible before it has changed anything.
  absl::Status EndOrphan();
  /// Ends the migration without the side that an operator has given up (Record::gone).
  absl::Status EndWithoutGoneSide();
  void NewCopier(Shape shape);

  // ---- boot IDs: whether a host was restarted or replaced (migration_boot_ids.cc) ----

  /// The boot IDs of both sides, "SOURCE|TARGET".
  static absl::StatusOr<std::string> BootIdsOf(MigrationControl& source, MigrationControl& target);
  /// Splits what BootIdsOf returned into the source's and the target's boot ID.
  static std::pair<std::string_view, std::string_view> SplitBootIds(std::string_view boots);
  /// Sets boot_ids_ to what both sides report now.
  absl::Status ReadBootIds();
  void UpdateTruthBootId();
  /// Whether a host of the truth was restarted or replaced since both sides were last found the same, so that
  /// it may have lost data.
  bool TruthWasReplaced() const;
  bool CopyWasReplaced() const;
  /// OK while no host of the truth was restarted or replaced since this worker took over; else UNAVAILABLE.
  absl::Status CheckTruth();
  /// Whether partitions appeared, or a host was restarted or replaced, since this worker took over.
  absl::StatusOr<bool> HasChanged();
  /// Whether the hosts of one side, the truth or the copy, are those of the last comparison that found both
  /// sides the same. Asks them; false if they cannot be asked.
  bool IsUnchangedSinceVerified(bool of_truth);
  /// Whether both sides must be compared before the other side is removed: from the first cutover on it may
  /// have what a host of the truth, the source, has lost. Asks the source.
  absl::StatusOr<bool> CancelMustWait();
  /// Returns to the verify phase if `boots` are not those of the last comparison that found both sides the
  /// same. Returns whether it did.
  absl::StatusOr<bool> VerifyAgain(const std::string& boots);

  // ---- phases ----

  absl::Status RunPhase();
  absl::Status Prepare();
  absl::Status Backfill();
  /// Copies all parts that are not done yet, by as many threads as the record says, and saves the progress
  /// once a second. Returns what failed first.
  absl::Status CopyParts();
  /// Copies one part until it is done, or `stop` returns true.
  absl::Status CopyPart(size_t part, const std::function<bool()>& stop);
  /// Whether an operator wants the backfill to stop: cancelled, abandoned or paused.
  bool BackfillIsInterrupted() const;
  /// Measures a read of the truth, for Limits::max_read_us.
  absl::Status ProbeReadLatency();
  absl::Status Verify();
  /// The mode of a verification; ChooseVerifyMode has the rules.
  struct VerifyMode {
    bool repairs = false;  ///< Differences are repaired on the copy.
    bool drains = false;   ///< The dirty log is drained meanwhile.
  };
  absl::StatusOr<VerifyMode> ChooseVerifyMode();
  /// Ranges that together are all units and mean the same on both sides.
  absl::StatusOr<std::vector<UnitRange>> RangesOfBothSides();
  /// Compares all ranges once, in parallel. Returns what failed first.
  absl::Status ComparePass(Verifier& verifier, const std::vector<UnitRange>& ranges);
  /// Writes the result of a pass into the record.
  absl::Status EndPass(const Verifier& verifier, bool repairs);
  /// Empties the copy's dirty log, which says nothing any more once both sides are found the same.
  absl::Status ClearCopyLog();
  /// Waits until an operator has said which side is right.
  absl::Status AwaitResolve();
  /// Keeps the copy current until something is requested.
  absl::Status Follow();
  /// Begins, changes or ends shadow reads, as the record says, and counts what they have found.
  absl::Status FollowShadowReads();
  /// Ends shadow reads, and counts what they have found until then.
  absl::Status EndShadowReads();
  absl::Status CountShadowReads(const ShadowReads::Counts& counts);
  /// Begins a cutover that was requested, unless shadow reads have found differences that nobody accepted.
  absl::Status BeginCutover(Wanted asked, const std::string& to);
  /// Begins what Record::wanted asks for. Returns whether Follow is to return, because another phase begins.
  absl::StatusOr<bool> ActOnWanted(const Record& now);

  // ---- cutover and end (migration_cutover.cc) ----

  absl::Status Cutover();
  /// Called when the truth is closed everywhere. Gives the cutover up if the other side may have lost data;
  /// records that the cutover must go on (Record::complete) if it is the truth that may have.
  absl::Status CheckBothSidesBeforeOpening();
  /// Completes a cutover: from held writes and a complete copy to the other side serving.
  ///
  /// opened  The other side serves in part already.
  absl::Status SwitchSides(bool opened);
  /// Finishes or gives up a cutover that an earlier worker began. False if there is none.
  absl::StatusOr<bool> ResumeCutover();
  /// Gives the cutover up until an operator has said which side is right. Returns true.
  absl::StatusOr<bool> RaiseDoubt(const std::string& why);
  /// Does everything that takes time, while clients still write.
  absl::Status Arm();
  /// Holds clients' writes, copies the rest, and switches sides.
  absl::Status Freeze();
  /// Holds clients' writes, and copies the rest, until `in_time` at most.
  absl::Status CopyTheRest(std::chrono::steady_clock::time_point in_time);
  /// Makes the catalog, and the record, name the side that serves now.
  absl::Status Route();
  /// Writes into the record that the other side is the truth: the cutover has ended.
  ///
  /// writes_ms, reads_ms  for how long clients' writes and reads were held; 0 if that is not known.
  absl::Status RecordCutover(uint64_t writes_ms, uint64_t reads_ms, std::string event);
  /// Gives the cutover up: the truth serves as before.
  absl::Status BackOut(const absl::Status& why);
  absl::Status Finish();
  absl::Status Abort();
  /// Removes the other side from the dataset's entry in the catalog: the dataset migrates no more.
  absl::Status ClearOtherSide();
  /// Removes the record, and ends the operation in the ledger.
  absl::Status End(Phase phase, std::string event);

  MigrationEndpoint& truth() { return on_target_ ? *target_ : *source_; }
  MigrationEndpoint& copy() { return on_target_ ? *source_ : *target_; }
  /// The phase in which the copy is only kept current.
  Phase RestingPhase() const { return on_target_ ? Phase::kReversible : Phase::kReady; }

  // ---- the record ----

  /// Changes the record and stores it, with one event more unless `event` is empty. `change` may refuse by an
  /// error, which is returned; then, and if storing fails, the record stays as it was.
  absl::Status ChangeOrRefuse(const std::function<absl::Status(Record&)>& change, std::string event,
                              std::string who);
  /// ChangeOrRefuse for an operator's request: sets Record::wanted, unless CheckCommand refuses it. OK, and
  /// nothing is changed, if the same was requested before.
  absl::Status RecordRequest(Wanted wanted, const std::function<absl::Status(Record&)>& change,
                             std::string event, std::string who);
  /// ChangeOrRefuse for the worker that begins what was requested. OK, and nothing is changed, if
  /// Record::wanted is not `wanted` any more.
  absl::Status ActOnRequest(Wanted wanted, const std::function<void(Record&)>& change,
                            std::string event = {});
  /// ChangeOrRefuse with a change that cannot fail.
  absl::Status Change(const std::function<void(Record&)>& change, std::string event = {},
                      std::string who = "worker");
  /// Stores the progress. Failures are ignored: what is not stored is copied again.
  void Checkpoint();
  /// Waits for changes_mutex_ as long as the limits of the thread's call allow.
  absl::StatusOr<DeadlineMutex::Guard> LockChanges();
  /// Stores a record. The caller holds changes_mutex_, and not mutex_.
  absl::Status Save(const Record& record);
  /// Puts a record in force that was stored. The caller holds changes_mutex_.
  ///
  /// before  the record as it was when the change was decided. The counts that copying threads have made
  ///         since then are kept.
  void Install(const Record& before, Record changed);
  /// The record as it is in force, without the progress that record() adds.
  Record InForce() const {
    const MutexLock lock(mutex_);
    return record_;
  }
  absl::Status AdvanceTo(Phase phase, std::string event);
  /// Whether the migration has ended.
  bool IsOver() const;
  bool stopping() const { return stop_.load(std::memory_order_relaxed); }
  /// Waits until an operator requests something, the worker is to stop, or the time has passed.
  void WaitForRequest(std::chrono::milliseconds time);
  /// Changes the dataset's entry in the catalog, provided that the record is still this worker's. UNAVAILABLE
  /// if the entry could not be changed for now.
  absl::Status ChangeEntry(const std::function<absl::Status(CatalogEntry&)>& change);
  /// Waits while the record is being stored, since its version is not known meanwhile.
  int64_t version() const {
    const DeadlineMutex::Guard changing = changes_mutex_.AcquireWithoutDeadline();
    const MutexLock lock(mutex_);
    return version_;
  }

  CatalogKeeper& keeper_;
  const Record names_;  // the record as it was loaded, for fields that never change
  // Serialises changes of the record, each from the decision until it is stored, which may take as long as
  // the catalog is away. It is acquired before the catalog's lock, and that before mutex_. Only the progress
  // of the threads that copy is counted without it.
  mutable DeadlineMutex changes_mutex_;
  // Never held while the catalog is asked: whoever shows the record does not wait for the catalog.
  mutable Mutex mutex_;
  std::condition_variable wake_run_;
  Record record_ ABSL_GUARDED_BY(mutex_);        // written by the worker and by operators' requests
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;  // the stored record's version
  // The latest epoch that this worker has tried to store without hearing whether it was.
  uint64_t tried_epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  Throttle throttle_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> cancelled_{false};  // the limits of the worker's calls point to it
  // Whether another record than the one in force may be stored, for example with an operator's command whose
  // storing failed in doubt: the worker stores the one in force again, so that no later worker carries out
  // what this one has never heard of.
  std::atomic<bool> unsettled_{false};
  std::atomic<bool> accepts_differences_{false};  // the next cutover may begin whatever shadow reads find

  // The worker's own; threads that it starts and joins read them too. The analysis cannot check these: the
  // worker reads them without mutex_, and holds it only to change source_, target_, copier_ and verifier_,
  // which other threads read under it.
  bool on_target_ = false;  // whether the target is the truth
  bool fresh_ = false;      // no earlier worker has written anything to the target
  uint64_t epoch_ = 0;
  std::string boot_ids_;       // of both sides, when this worker took over
  std::string truth_boot_id_;  // the truth's part of boot_ids_
  DatasetSpec spec_;           // the dataset that the sides were opened with
  std::string operation_;      // the ID in the ledger; empty if the operation was not begun there
  std::chrono::steady_clock::time_point
      settle_at_{};            // not before, the record is stored because of unsettled_
  bool cancel_waits_ = false;  // a cancel does not end the comparison that runs
  bool alone_ = false;         // the other side cannot be reached, and is not needed for what is to be done
  bool retake_ = false;  // what this worker took over has changed: it takes over again, without an error
  /// Since when clients have been waiting for the cutover.
  struct PausedSince {
    std::chrono::steady_clock::time_point writes;
    std::chrono::steady_clock::time_point reads;
  };
  std::optional<PausedSince> paused_since_;    // none if an earlier worker began the cutover
  std::string verified_;                       // Record::verified when the cutover began
  std::shared_ptr<MigrationEndpoint> source_;  // of the present epoch
  std::shared_ptr<MigrationEndpoint> target_;
  std::unique_ptr<Copier> copier_;             // in the present direction, under the present epoch
  std::unique_ptr<Drainer> drainer_;           // while the copy is kept current
  std::unique_ptr<ShadowReads> shadow_reads_;  // while Follow runs; it uses copier_
  uint32_t shadow_share_ = 0;                  // of shadow_reads_
  std::atomic<Verifier*> verifier_{nullptr};
};

}  // namespace kvstore::migration
