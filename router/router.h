#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <unordered_map>

#include "base/snapshot.h"
#include "kvstore_api/backend.h"
#include "kvstore_api/batch.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/catalog.h"
#include "kvstore_api/kvstore.h"
#include "kvstore_api/moved.h"

namespace kvstore {

/// The KVStore in process: checks arguments, finds the dataset's store, opens and seals markers, and calls
/// the backend. Finding costs one hash look-up in an immutable snapshot of the catalog, without a lock that
/// others hold for long.
///
/// Where the catalog is shared, changes by other processes come into force here within a second. While it
/// cannot be reached, known datasets are served, and none is created, changed or dropped.
///
/// A backend that refuses a call because its dataset moves (moved.h) does not fail it: the call waits, and is
/// repeated where the catalog says by then, until its deadline or, without one, for kMaxHold. It waits in its
/// thread, unless CallLimits::waits is false: then it is told so at once.
class Router : public KVStore {
 public:
  using Backends = std::map<std::string, std::unique_ptr<Backend>, std::less<>>;

  using Clock = CallLimits::Clock;

  /// How long a call without a deadline waits for a dataset that moves.
  static constexpr std::chrono::seconds kMaxHold{10};
  /// So long such a call waits at most until it is tried again.
  static constexpr std::chrono::milliseconds kHoldStep{20};

  /// Takes over catalog and backends, opens every dataset, and finishes creates and drops that a crash cut
  /// short. With a shared catalog a dataset that cannot be opened here fails its own calls, saying why.
  ///
  /// contents         of the catalog, as LoadOrCopy gave it.
  /// default_backend  where datasets go whose creator names no backend; must be one of `backends`.
  /// fleet            where operators of the fleet begin what they do to shards; null: the catalog's ledger.
  static absl::StatusOr<std::unique_ptr<Router>> Open(std::unique_ptr<Catalog> catalog,
                                                      const CatalogContents& contents, Backends backends,
                                                      std::string default_backend,
                                                      std::unique_ptr<Ledger> fleet = nullptr);
  /// The same for a catalog that is loaded here.
  static absl::StatusOr<std::unique_ptr<Router>> Open(std::unique_ptr<Catalog> catalog, Backends backends,
                                                      std::string default_backend);
  ~Router() override;

  /// Where calls on a dataset go.
  struct Where {
    std::string_view backend;                      ///< Its name; valid as long as the router.
    bool waits = false;                            ///< Capabilities::waits.
    Durability durability = Durability::kProcess;  ///< DatasetSpec::durability.
  };
  /// Nothing for a dataset that is not known.
  std::optional<Where> Locate(std::string_view dataset) const;

  std::vector<std::string> BackendNames() const;
  /// INVALID_ARGUMENT names those that there are.
  absl::StatusOr<Backend*> FindBackend(std::string_view name) const;

  /// Whether the catalog is also that of other processes.
  bool SharesCatalog() const { return catalog_->shared(); }
  /// Has a shared catalog read again, soon. Returns at once.
  void LookAgain();

  // ---- for who makes calls that do not wait (CallLimits::waits) ----

  /// How long a call that was told `moving`, at first at `since`, is to be made again, if it has so much
  /// time.
  static Clock::time_point HeldUntil(Clock::time_point since, const absl::Status& moving);
  /// Waits until another catalog than `seen` is in force, which then is that one, or for kHoldStep. False:
  /// only the time is over.
  ///
  /// seen  null at first: the one in force; not to be looked into.
  bool AwaitCatalog(std::shared_ptr<const void>& seen);

  // ---- for migrations ----

  /// Calls `work` with the catalog, while no other change is made here.
  absl::Status WithCatalog(const std::function<absl::Status(Catalog&)>& work);
  /// The dataset's entry, as the catalog has it now.
  absl::StatusOr<CatalogEntry> LoadEntry(std::string_view dataset);
  /// Changes the dataset's entry by `change`, which may be called again on a newer one, and puts it in force
  /// here. What `change` returns other than OK is returned, and nothing changed.
  ///
  /// fence  As in Catalog::Put. ABORTED if it does not hold any more, or if others change the catalog all the
  /// time.
  absl::Status ChangeEntry(std::string_view dataset, const std::function<absl::Status(CatalogEntry&)>& change,
                           const RecordFence& fence);

  /// What is being done to datasets and shards, by this process and those that share the catalog or the
  /// fleet.
  Ledger& ledger() { return ledger_; }
  /// The migration of a dataset, as it is begun in the ledger from its creation to its end: nobody creates,
  /// alters or drops the dataset, nor opens or moves shards that it is or will be on.
  Operation MigrationOf(const DatasetSpec& source, const DatasetSpec& target) const;

  /// Catalog and backends.
  void Describe(MetricsSink& sink) const;
  /// OK unless one of its backends cannot write anything (Backend::CheckWrites).
  absl::Status CheckWrites();

  absl::Status CreateDataset(const DatasetSpec& spec) override;
  absl::Status AlterDataset(std::string_view dataset, const DatasetChange& change) override;
  absl::Status DropDataset(std::string_view dataset, const DropOptions& options) override;
  absl::StatusOr<DatasetSpec> GetDataset(std::string_view dataset) override;
  absl::StatusOr<std::vector<DatasetSpec>> ListDatasets() override;
  absl::StatusOr<DatasetStats> GetStats(std::string_view dataset) override;
  absl::StatusOr<ReclaimResult> Compact(std::string_view dataset, const Progress& progress) override;

  absl::StatusOr<Row> GetRow(std::string_view dataset, std::string_view row,
                             const ReadOptions& options) override;
  absl::StatusOr<PutResult> PutRow(std::string_view dataset, std::string_view row,
                                   std::span<const CellWrite> cells, const WriteOptions& options) override;
  absl::Status DeleteRow(std::string_view dataset, std::string_view row,
                         const DeleteOptions& options) override;
  absl::StatusOr<std::vector<absl::StatusOr<Row>>> GetRows(std::string_view dataset,
                                                           std::span<const RowRead> reads) override;
  absl::StatusOr<std::vector<absl::StatusOr<PutResult>>> PutRows(std::string_view dataset,
                                                                 std::span<const RowWrite> writes) override;
  absl::StatusOr<std::vector<absl::Status>> DeleteRows(std::string_view dataset,
                                                       std::span<const RowDelete> deletes) override;
  absl::StatusOr<std::unique_ptr<RowCursor>> ScanRows(std::string_view dataset, const RowRange& range,
                                                      const ScanOptions& options) override;
  absl::StatusOr<std::vector<Partition>> ListPartitions(std::string_view dataset, size_t wanted) override;

  absl::StatusOr<uint64_t> CreateObject(std::string_view dataset, std::string_view data,
                                        const CreateOptions& options) override;
  absl::StatusOr<Object> GetObject(std::string_view dataset, uint64_t id,
                                   const ObjectReadOptions& options) override;
  absl::StatusOr<std::vector<absl::StatusOr<Object>>> GetObjects(std::string_view dataset,
                                                                 std::span<const uint64_t> ids,
                                                                 const ObjectReadOptions& options) override;
  absl::StatusOr<Object> UpdateObject(std::string_view dataset, uint64_t id, const ObjectTransform& transform,
                                      const UpdateOptions& options) override;
  absl::StatusOr<Object> PatchObject(std::string_view dataset, uint64_t id, std::string_view merge_patch,
                                     const UpdateOptions& options) override;
  absl::Status DeleteObject(std::string_view dataset, uint64_t id, bool hard) override;

  absl::Status AddMapping(std::string_view dataset, uint64_t from, uint64_t to,
                          std::optional<uint64_t> sequence) override;
  absl::StatusOr<bool> RemoveMapping(std::string_view dataset, uint64_t from, uint64_t to) override;
  absl::StatusOr<MappingPage> ListMapping(std::string_view dataset, uint64_t from,
                                          const MappingListOptions& options) override;
  absl::StatusOr<uint64_t> CountMapping(std::string_view dataset, uint64_t from) override;
  absl::StatusOr<JoinedPage> ListObjects(std::string_view dataset, uint64_t from,
                                         const MappingListOptions& options) override;

 private:
  /// An open dataset: the store of its shape is set, the others are null.
  struct Dataset {
    DatasetSpec spec;
    Backend* backend = nullptr;
    std::string_view backend_name;
    bool waits = false;
    absl::Status problem;  // why no store is set
    std::shared_ptr<RowStore> rows;
    std::shared_ptr<ObjectStore> objects;
    std::shared_ptr<MappingStore> mappings;
  };

  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };
  using Datasets = std::unordered_map<std::string, std::shared_ptr<const Dataset>, NameHash, std::equal_to<>>;

  /// Until when a change waits for operations that end by themselves; none: it has not met one yet.
  using Patience = std::optional<std::chrono::steady_clock::time_point>;

  /// A dataset and what keeps it alive during a call.
  struct Found {
    std::shared_ptr<const Datasets> snapshot;
    const Dataset* dataset;
    const Dataset* operator->() const { return dataset; }
  };

  Router(std::unique_ptr<Catalog> catalog, Backends backends, std::string default_backend,
         std::unique_ptr<Ledger> fleet);

  // ---- finding ----

  absl::StatusOr<Found> Find(std::string_view name) const;
  absl::StatusOr<Found> Find(std::string_view name, Shape shape) const;
  /// Finds the dataset and makes the call `call(const Dataset&)`, which gives a Status or StatusOr; again
  /// while the dataset moves.
  template <typename Call>
  auto Route(std::string_view name, Shape shape, const Call& call)
      -> std::invoke_result_t<Call, const Dataset&>;
  /// The same for a batch: `send(const Dataset&, std::span<const Entry>)` gives the answers in order; those
  /// entries that met a move are sent again. `check(const Dataset&, const Entry&)` is the Status of an entry.
  template <typename Answer, typename Entry, typename Check, typename Send>
  absl::StatusOr<std::vector<Answer>> RouteBatch(std::string_view name, Shape shape,
                                                 std::span<const Entry> entries, const Check& check,
                                                 const Send& send);
  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <typename T>
  static const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
    return result.status();
  }
  /// The objects behind entries of a mapping, of whichever datasets.
  std::vector<JoinedObject> Join(std::span<const MappingEntry> entries);
  /// Waits a moment for a dataset that moves, if the call may. OK: try again. Else what to tell the caller.
  absl::Status Hold(Clock::time_point since, const absl::Status& moving);

  // ---- the catalog; all under catalog_mutex_ ----

  /// Loads the catalog and puts it in force.
  absl::StatusOr<CatalogContents> Refresh();
  /// Puts what the catalog says in force here: opens what is new, closes what is gone.
  absl::Status Adopt(const CatalogContents& contents);
  absl::StatusOr<std::shared_ptr<const Dataset>> AdoptDataset(const DatasetSpec& spec);
  /// Creates and drops that nobody will finish any more: what is there goes.
  absl::Status FinishAbandoned(CatalogContents contents);
  absl::StatusOr<std::shared_ptr<const Dataset>> OpenDataset(const DatasetSpec& spec);
  absl::Status CreateHere(const DatasetSpec& spec);
  absl::Status DropHere(const DatasetSpec& spec);
  /// Drops what `mine`, an entry that this process has put at that version, says, and takes the entry out.
  ///
  /// held  of the operation, if there is one: what has been taken over by another process is left alone.
  absl::Status FinishDrop(const CatalogEntry& mine, int64_t version, const Held* held);
  /// Writes the next step of a create or drop at which this process is, by `change(version)`, which gives the
  /// new version or ABORTED, on whichever version the catalog is by now. UNAVAILABLE, in doubt, if the entry
  /// is not `mine` any more: another process has taken over.
  absl::Status Settle(const CatalogEntry& mine, int64_t version,
                      const std::function<absl::StatusOr<int64_t>(int64_t)>& change);
  /// Begins a change of a dataset, if `held` does not have it yet. ABORTED: another operation is in the way
  /// that ends by itself; look at the catalog again.
  absl::Status BeginChange(std::string_view verb, const DatasetSpec& spec, Patience& patience, Held& held);
  /// FAILED_PRECONDITION if there is a record of a migration of the dataset, started or not.
  absl::Status CheckNoMigration(std::string_view name);
  /// Gives a spec of CreateDataset its backend, type and incarnation.
  absl::Status Complete(DatasetSpec& spec, const CatalogContents& contents);
  /// Removes what a drop that nobody is at has left of the entry of that name, before it is used again:
  /// afterwards nobody would know what is to be removed.
  absl::Status FinishRest(const CatalogContents& contents, const std::string& name);
  void Publish(std::string_view name, std::shared_ptr<const Dataset> dataset);
  void Unpublish(std::string_view name);
  /// The thread that follows a shared catalog.
  void Follow();

  const std::unique_ptr<Catalog> catalog_;
  JoinedLedger ledger_;
  const Backends backends_;
  const std::string default_backend_;
  std::mutex catalog_mutex_;  // one change of a dataset at a time; guards catalog_ and replacing snapshot_
  Snapshot<Datasets> snapshot_;

  std::mutex follow_mutex_;  // guards what follows
  std::condition_variable wanted_;
  std::condition_variable adopted_;
  bool refresh_ = false;
  bool stopping_ = false;
  uint64_t adoptions_ = 0;  // how often the catalog was put in force
  std::thread follower_;
};

// ---- implementation ----

template <typename Call>
auto Router::Route(std::string_view name, Shape shape, const Call& call)
    -> std::invoke_result_t<Call, const Dataset&> {
  if (auto status = CheckCall(); !status.ok()) return status;
  std::optional<Clock::time_point> since;
  for (;;) {
    absl::Status moving;
    {
      const auto found = Find(name, shape);
      if (!found.ok()) return found.status();
      auto result = call(*found->dataset);
      if (result.ok() || !IsMoving(StatusOf(result))) return result;
      moving = StatusOf(result);
    }
    if (!since) since = Clock::now();
    if (auto status = Hold(*since, moving); !status.ok()) return status;
  }
}

template <typename Answer, typename Entry, typename Check, typename Send>
absl::StatusOr<std::vector<Answer>> Router::RouteBatch(std::string_view name, Shape shape,
                                                       std::span<const Entry> entries, const Check& check,
                                                       const Send& send) {
  std::vector<Answer> answers;
  std::vector<size_t> places;  // of the entries that met a move
  auto sent = Route(name, shape, [&](const Dataset& dataset) -> absl::Status {
    const bool first = answers.empty();
    std::vector<Entry> again;
    for (const size_t place : places) again.push_back(entries[place]);
    std::vector<Answer> some = SendValid<Answer>(
        first ? entries : std::span<const Entry>(again),
        [&](const Entry& entry) { return check(dataset, entry); },
        [&](std::span<const Entry> valid) { return send(dataset, valid); });
    if (first) {
      answers = std::move(some);
      for (size_t i = 0; i < answers.size(); ++i) {
        if (IsMoving(StatusOf(answers[i]))) places.push_back(i);
      }
    } else {
      std::vector<size_t> still;
      for (size_t i = 0; i < places.size(); ++i) {
        if (IsMoving(StatusOf(some[i]))) still.push_back(places[i]);
        answers[places[i]] = std::move(some[i]);
      }
      places = std::move(still);
    }
    return places.empty() ? absl::OkStatus() : StatusOf(answers[places.front()]);
  });
  if (answers.empty() && !sent.ok()) return sent;
  // Those that were held until the end keep what they were told, but for calls that ran out of time.
  for (const size_t place : places) {
    if (!IsMoving(sent)) answers[place] = sent;
  }
  return answers;
}

}  // namespace kvstore
