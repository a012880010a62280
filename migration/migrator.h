#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "backend_api/migrations.h"
#include "base/metrics_sink.h"
#include "base/mutex.h"
#include "catalog/deadline_mutex.h"
#include "migration/diagnosis.h"
#include "migration/migration.h"
#include "router/catalog_keeper.h"

namespace kvstore {
namespace migration {
struct CommandOptions;
}  // namespace migration

/// Runs the migrations of this process: one thread for each that is started. Where the catalog is shared,
/// only one process at a time runs a migration; the others refuse commands for it and name that process. When
/// it is gone, any other may `resume` the migration. Thread-safe.
class Migrator : public Migrations {
 public:
  /// The keeper must outlive it.
  ///
  /// audit  file to which a line of JSON is appended for each command; empty: none.
  /// time   by which the limits of migrations' rates hold.
  Migrator(CatalogKeeper& keeper, std::filesystem::path audit, migration::ThrottleTime time = {});
  /// Waits as Wait does.
  ~Migrator() override;

  /// Starts a thread that resumes migrations whose process is gone, every 3 s until this is destroyed. Of
  /// several processes that have both backends of a migration, one will run it. Call once.
  void TakeOverAbandoned();

  /// Tells all threads to stop, each between two steps, and returns at once. The migrations stay as they are,
  /// and can be resumed elsewhere. From now on none is started here: UNAVAILABLE.
  void Stop();
  /// Tells all threads to stop and waits until they have. Must not run at the same time as Command.
  ///
  /// patience  A thread that has not stopped by then is not waited for any more: what it has asked of a
  ///           backend, or of the catalog, is cut, and the step that it was at is left as it is, for whoever
  ///           continues the migration.
  void Wait(std::chrono::steady_clock::time_point patience = std::chrono::steady_clock::time_point::max());
  /// The datasets whose migrations have a thread here that has not ended.
  std::vector<std::string> RunningHere() const;

  absl::StatusOr<Json> Command(const Json& command) override;

  void Describe(MetricsSink& sink) const override;

 private:
  struct Running {
    std::shared_ptr<migration::Migration> migration;
    std::thread thread;
    bool ended = false;  // guarded by the Migrator's mutex_, which the analysis cannot express here
  };
  using Options = migration::CommandOptions;

  /// Whether a thread of a migration, or follower_, has not ended.
  bool IsBusy() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Resumes the migrations whose process is gone, once.
  absl::Status ResumeAbandoned();
  absl::StatusOr<Json> Create(const Options& options);
  /// Checks that a migration can begin with this side: all of its hosts answer, and its state allows it.
  ///
  /// serves  it is the source, which must serve; else the target, which must not have the dataset.
  absl::Status CheckNewSide(const DatasetSpec& side, bool serves) const;
  /// Claims the dataset in the ledger, and stores the record of a new migration.
  absl::Status StoreNew(const migration::Record& record, const DatasetSpec& source, const DatasetSpec& target,
                        const std::string& who);
  /// The names of all datasets that migrate.
  absl::StatusOr<std::vector<std::string>> ListNames();
  /// {"migrations": [...]}, each as Status returns it. A record that does not decode has only the fields
  /// `dataset`, `phase`, which is "unreadable", and `problem`.
  absl::StatusOr<Json> List();
  /// The migration as operators see it. NOT_FOUND if there is none; DATA_LOSS if its record does not decode.
  absl::StatusOr<Json> Status(const std::string& dataset);
  /// Starts the worker's thread for a migration, unless this process runs it already. FAILED_PRECONDITION if
  /// another process does.
  ///
  /// resume  Not checked whether the command is possible: the caller has done that.
  absl::Status Start(const Options& options, bool resume);
  /// Returns the mutex that serialises what starts or repairs the migration of a dataset, both of which ask
  /// the catalog; acquired before mutex_. It lives as long as somebody has it.
  std::shared_ptr<DeadlineMutex> StartMutexOf(const std::string& dataset);
  /// Start for a caller that holds the dataset's StartMutexOf.
  absl::Status StartHere(const Options& options, bool resume);
  /// Says how a migration stands; with `yes` also carries out what mends it, and lets a worker of this
  /// process go on (migrator_repair.cc). FAILED_PRECONDITION if another process works on it.
  absl::StatusOr<Json> Repair(const Options& options);
  /// Asks both sides and the catalog. NOT_FOUND if nothing says that the dataset migrates.
  absl::StatusOr<migration::RepairFacts> GatherRepairFacts(const std::string& dataset);
  /// Ends the worker of this process between two steps, if there is one. UNAVAILABLE if it does not end.
  absl::Status StopHere(const std::string& dataset);
  /// Carries out all steps but the last one, by which a worker goes on. The caller holds the dataset's
  /// StartMutexOf, and no worker runs here.
  absl::Status CarryOut(const migration::RepairFacts& facts, const migration::Diagnosis& diagnosis,
                        const Options& options);
  /// Carries out a command on a migration that exists; starts its thread first.
  absl::StatusOr<Json> Execute(const Options& options);
  /// Cancels a migration that has no record: ends the operation that a create which was cut short may have
  /// left in the ledger, where it would last, but not in a dry run. Returns NOT_FOUND, which says so.
  absl::Status CancelUnrecorded(const Options& options);
  /// Checks the backend that `resolve` or `abandon` names.
  absl::Status CheckSide(const migration::Record& record, const Options& options);
  /// The migration, if this process runs it; else null.
  std::shared_ptr<migration::Migration> FindRunning(const std::string& dataset) const;
  /// The record of a migration that runs here, is stored, or ended here last. NOT_FOUND if there is none.
  absl::StatusOr<migration::Record> LoadRecord(const std::string& dataset);
  /// Joins the thread of a migration that has ended here, and forgets it.
  void ForgetEnded(const std::string& dataset);
  void Audit(const Options& options, const absl::Status& status);

  CatalogKeeper& keeper_;
  const std::filesystem::path audit_;
  const migration::ThrottleTime time_;
  mutable Mutex mutex_;
  std::map<std::string, std::unique_ptr<Running>, std::less<>> running_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::weak_ptr<DeadlineMutex>> start_mutexes_ ABSL_GUARDED_BY(mutex_);
  Mutex audit_mutex_;  // serialises appends to the audit file
  std::condition_variable stopped_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::condition_variable ended_;                 // notified when a thread has ended
  bool follows_ ABSL_GUARDED_BY(mutex_) = false;  // follower_ runs
  std::atomic<bool> cancelled_{false};            // the limits of follower_'s calls point to it
  std::thread follower_;
};

}  // namespace kvstore
