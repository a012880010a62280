#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/backend.h"
#include "base/mutex.h"
#include "catalog/catalog.h"
#include "catalog/deadline_mutex.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/kvstore.h"
#include "router/dataset_directory.h"
#include "router/read_taps.h"

namespace kvstore {

/// The catalog as it is in force in this process: creates, alters and drops datasets in the catalog and in
/// the backends, puts what other processes change in force here, and finishes what those left that died. It
/// owns the catalog, the backends and the directory in which calls find the datasets.
///
/// Where the catalog is shared, changes by other processes come into force here within a second. While the
/// catalog cannot be reached, known datasets are served, but none can be created, altered or dropped.
///
/// Thread-safe.
class CatalogKeeper {
 public:
  using Backends = std::map<std::string, std::unique_ptr<Backend>, std::less<>>;
  using Clock = CallLimits::Clock;

  /// How long a call that waits for another catalog waits at most before it is retried.
  static constexpr std::chrono::milliseconds kRetryInterval{20};
  /// How long a change of the catalog, or a compaction, waits for conflicting operations that end by
  /// themselves.
  static constexpr std::chrono::milliseconds kMaxOperationWait{2'000};

  /// Parameters as of Router::Open. Nothing is open before Start.
  CatalogKeeper(std::unique_ptr<Catalog> catalog, Backends backends, std::string default_backend,
                std::unique_ptr<Ledger> fleet);
  ~CatalogKeeper();
  CatalogKeeper(const CatalogKeeper&) = delete;
  CatalogKeeper& operator=(const CatalogKeeper&) = delete;

  /// Opens every dataset of the catalog, finishes creates and drops that a crash cut short, and follows the
  /// catalog from then on if it is shared. Once. Errors as of Router::Open.
  absl::Status Start(const CatalogContents& contents);

  const DatasetDirectory& directory() const { return directory_; }
  const Backends& backends() const { return backends_; }
  std::vector<std::string> BackendNames() const;
  /// INVALID_ARGUMENT, with the names of all backends, if there is none of that name.
  absl::StatusOr<Backend*> FindBackend(std::string_view name) const;

  // ---- contracts as of KVStore ----

  absl::StatusOr<DatasetStats> GetStats(std::string_view name) const;

  absl::Status CreateDataset(const DatasetSpec& wanted) { return CreateDataset(wanted, nullptr); }
  absl::Status AlterDataset(std::string_view name, const DatasetChange& change);
  absl::Status DropDataset(std::string_view name, const DropOptions& options);

  /// Makes and fills a dataset in its backend, which has nothing of it yet; when it returns OK, the dataset
  /// serves there.
  using Fill = std::function<absl::Status(const DatasetSpec& spec, Backend& backend)>;
  /// CreateDataset for a dataset that has data from the beginning. Nobody finds the dataset before `fill` has
  /// returned OK. If that fails, or the process ends, the dataset is dropped as one whose create was cut
  /// short. Other changes of the catalog by this process wait meanwhile.
  ///
  /// fill  given the spec with all that its creator left open; null: the dataset is empty.
  absl::Status CreateDataset(const DatasetSpec& wanted, const Fill& fill);

  // ---- following ----

  /// Whether other processes change the catalog too.
  bool SharesCatalog() const { return catalog_->shared(); }
  /// Loads the catalog and puts it in force, for a caller who needs the settings of now.
  absl::Status RefreshNow();
  /// Makes this process read a shared catalog again, soon. Returns at once.
  void RequestRefresh();
  /// As RequestRefresh, and waits until a catalog was put in force, or until `until`.
  void RefreshAndWait(Clock::time_point until);
  /// Waits until another catalog than `seen` is in force, or for kRetryInterval. Returns whether there is
  /// another one, and sets `seen` to it.
  ///
  /// seen  identifies a catalog; null at first, for the one in force. Callers must not look into it.
  bool WaitForNewCatalog(std::shared_ptr<const void>& seen);

  // ---- for migrations ----

  /// Calls `work` with the catalog, while this process makes no other change to it.
  absl::Status WithCatalog(const std::function<absl::Status(Catalog&)>& work);
  /// Reads the dataset's entry from the catalog. NOT_FOUND if there is none, or it is being created or
  /// dropped.
  absl::StatusOr<CatalogEntry> LoadEntry(std::string_view dataset);
  /// Changes the dataset's entry by `change`, and puts the new catalog in force here. If another process is
  /// faster, `change` is called again on the newer entry. Its error is returned, and nothing is changed then.
  ///
  /// fence  as in Catalog::Put. ABORTED if it does not hold any more, or if others change the catalog all the
  ///        time.
  absl::Status ChangeEntry(std::string_view dataset, const std::function<absl::Status(CatalogEntry&)>& change,
                           const RecordFence& fence);

  /// By which a migration is told of reads of its dataset.
  ReadTaps& read_taps() { return read_taps_; }

  /// The operations on datasets, shards and hosts by everybody who shares the catalog or the fleet.
  Ledger& ledger() { return ledger_; }
  /// Returns the operation that a dataset's migration holds in the ledger from its creation to its end. While
  /// it is held, nobody can create, alter or drop the dataset, nor open or move shards that it is or will be
  /// on.
  Operation MigrationOf(const DatasetSpec& source, const DatasetSpec& target) const;

  /// Reports metrics of the catalog and the backends.
  void Describe(MetricsSink& sink) const;

 private:
  /// Until when a change waits for conflicting operations that end by themselves; none: it has not met one
  /// yet.
  using WaitDeadline = std::optional<std::chrono::steady_clock::time_point>;
  using Datasets = DatasetDirectory::Datasets;

  // ---- the catalog; the caller holds catalog_mutex_, but for LockCatalog ----

  /// Waits for catalog_mutex_ as long as the limits of the thread's call allow.
  absl::StatusOr<DeadlineMutex::Guard> LockCatalog();
  /// Loads the catalog and puts it in force.
  absl::StatusOr<CatalogContents> Refresh();
  /// Puts the catalog in force here: opens datasets that are new, and closes those that are gone.
  absl::Status Adopt(const CatalogContents& contents);
  /// Opens a dataset, or puts its new settings in force. If the catalog is shared, a dataset that cannot be
  /// opened is returned with its `problem`.
  absl::StatusOr<std::shared_ptr<const ServedDataset>> AdoptDataset(const DatasetSpec& spec);
  /// Returns what calls find for a dataset whose entry cannot be read: the dataset as it is open here
  /// already, or else one with a `problem`, of which only the name is known.
  std::shared_ptr<const ServedDataset> AdoptDamaged(const CatalogContents& contents,
                                                    const std::string& name) const;
  /// Drops the datasets whose create or drop nobody will finish any more.
  absl::Status FinishAbandoned(CatalogContents contents);
  absl::StatusOr<std::shared_ptr<const ServedDataset>> OpenDataset(const DatasetSpec& spec);
  /// Creates the dataset in its backend, filled if `fill` is set, opens it, and lets calls find it.
  absl::Status CreateHere(const DatasetSpec& spec, const Fill& fill);
  /// Makes the dataset invisible to calls, and drops it in its backend.
  absl::Status DropHere(const DatasetSpec& spec);
  /// Whether a create needs no entry from before it: if it is cut short, its backend cleans up, and there is
  /// nobody else who would have to know of it.
  bool CreatesAtOnce(const DatasetSpec& spec, const CatalogContents& contents, const Fill& fill) const;
  /// Creates the dataset in its backend, then puts its entry into the catalog at that version, and lets calls
  /// find it. Such a create waits for the disk three times, and one in two steps five times.
  absl::Status CreateAtOnce(const DatasetSpec& spec, int64_t version);
  /// Creates the dataset of `mine`, an entry that this process has put at that version, and makes the entry
  /// active. If that fails, the dataset is dropped again, as far as that is possible.
  absl::Status FinishCreate(const CatalogEntry& mine, int64_t version, const Held& held, const Fill& fill);
  /// Drops the dataset of `mine`, an entry that this process has put at that version, and removes the entry.
  ///
  /// held  the operation in the ledger, or null. If it is not held any more, another process may have taken
  ///       the entry over, and nothing is dropped.
  absl::Status FinishDrop(const CatalogEntry& mine, int64_t version, const Held* held);
  /// Writes the next step of this process' create or drop by `change(version)`, which returns the new
  /// version, or ABORTED if the catalog is at another one; then `change` is retried. UNAVAILABLE, in doubt,
  /// if the entry is not `mine` any more, because another process has taken it over.
  absl::Status AdvanceEntry(const CatalogEntry& mine, int64_t version,
                            const std::function<absl::StatusOr<int64_t>(int64_t)>& change);
  /// Begins the operation for a change of a dataset, unless `held` has it already. ABORTED, after a pause: a
  /// conflicting operation ends by itself; read the catalog again and retry.
  absl::Status BeginChange(std::string_view verb, const DatasetSpec& spec, WaitDeadline& deadline,
                           Held& held);
  /// FAILED_PRECONDITION if there is a record of a migration of the dataset, started or not.
  absl::Status CheckNoMigrationRecord(std::string_view name);
  /// Sets the fields that the creator of a dataset left open: backend, type, incarnation and table. Checks
  /// that name and type are free.
  absl::Status CompleteSpec(DatasetSpec& spec, const CatalogContents& contents);
  /// Whether the entry is of a create or drop that was cut short, and that nobody works on any more.
  bool IsAbandoned(const CatalogEntry& entry) const;
  /// Makes an abandoned entry that of a drop by this process, so that no other one does the same, and the
  /// name is not used again meanwhile. Returns the catalog's new version; ABORTED if the catalog has changed
  /// since `version`.
  absl::StatusOr<int64_t> TakeOverAbandoned(CatalogEntry& entry, int64_t version);
  /// Drops the dataset of an abandoned entry, which a caller asks about, and removes the entry. ABORTED if
  /// the catalog has changed since `version`; UNAVAILABLE if this process lacks the backend.
  absl::Status FinishAbandonedEntry(CatalogEntry entry, int64_t version);
  /// Runs in a thread that follows a shared catalog.
  void Follow();

  const std::unique_ptr<Catalog> catalog_;
  ReadTaps read_taps_;
  JoinedLedger ledger_;
  const Backends backends_;
  const std::string default_backend_;
  // Serialises changes of datasets. Its holder alone uses catalog_ and changes directory_.
  DeadlineMutex catalog_mutex_;
  DatasetDirectory directory_;
  std::set<std::string> damaged_;  // the entries of which the log says that they cannot be read

  Mutex follow_mutex_;
  std::condition_variable wanted_;                       // wakes the follower
  std::condition_variable adopted_;                      // wakes calls that wait for another catalog
  bool refresh_ ABSL_GUARDED_BY(follow_mutex_) = false;  // the follower is to load the catalog now
  bool stopping_ ABSL_GUARDED_BY(follow_mutex_) = false;
  uint64_t adoptions_ ABSL_GUARDED_BY(follow_mutex_) = 0;  // how often a catalog was put in force
  absl::Status unread_ ABSL_GUARDED_BY(follow_mutex_);     // why the follower last failed to load it
  std::thread follower_;
};

}  // namespace kvstore
