#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/changes.h"
#include "kvstore_api/dataset.h"
#include "kvstore_api/options.h"
#include "kvstore_api/types.h"

namespace kvstore {

/// Reads the rows of a range one by one. Holds resources of the store, and so must be destroyed before the
/// store. Externally synchronised; several cursors can run in parallel.
class RowCursor {
 public:
  virtual ~RowCursor() = default;

  /// Reads the next row, or the next piece of a large one, into `row`, whose memory is reused. False only at
  /// the end: however many cells have to be skipped, a call continues until it has found something, or
  /// exceeds its limits (CallScope). A caller that cannot wait for that makes the call within a ScanBudget
  /// (backend_api/scan_budget.h); if the call then fails with an error that IsPaused accepts, call again, and
  /// the scan continues where it was.
  [[nodiscard]] virtual absl::StatusOr<bool> Next(ScannedRow& row) = 0;

  /// Returns a token with which ScanRows continues after the row that Next returned last, also in another
  /// process; empty before the first row.
  [[nodiscard]] virtual std::string marker() const = 0;
};

/// A store of datasets, which hold data of three shapes. One interface for every backend, in process
/// (`kvstore::Open`, open.h) and over the network (`kvstore::Connect`, connect.h).
///
/// Thread-safe. A CallScope (call_scope.h) limits how long calls take. Every call on data takes the dataset's
/// name first: NOT_FOUND if there is none, FAILED_PRECONDITION if it has another shape. Arguments beyond the
/// limits of limits.h are INVALID_ARGUMENT with the field and the limit, and change nothing. Stored bytes
/// that do not decode are DATA_LOSS, a full disk is RESOURCE_EXHAUSTED, an unreachable host UNAVAILABLE. A
/// write that returned OK survives what the dataset's durability promises.
class KVStore {
 public:
  virtual ~KVStore() = default;

  // ---- datasets ----

  /// Creates an empty dataset. INVALID_ARGUMENT names a bad field; ALREADY_EXISTS if the name, or the type
  /// number of objects, is taken. An `incarnation` of 0 is chosen by the store; with another one, creating
  /// the dataset that has it already is OK.
  [[nodiscard]] virtual absl::Status CreateDataset(const DatasetSpec& spec) = 0;
  /// Changes settings. They are in force for every call that starts after this has returned; in other
  /// processes that share the catalog, within a second. Lowering max_versions or ttl_ms hides cells at once;
  /// raising one may make cells visible again that have not been removed yet.
  [[nodiscard]] virtual absl::Status AlterDataset(std::string_view dataset, const DatasetChange& change) = 0;
  /// Removes the dataset and all of its data.
  [[nodiscard]] virtual absl::Status DropDataset(std::string_view dataset, const DropOptions& options) = 0;
  [[nodiscard]] virtual absl::StatusOr<DatasetSpec> GetDataset(std::string_view dataset) = 0;
  /// Returns all datasets by name, ascending. A dataset whose entry in a shared catalog cannot be read has
  /// only its name: its `backend` is empty.
  [[nodiscard]] virtual absl::StatusOr<std::vector<DatasetSpec>> ListDatasets() = 0;
  /// Returns rough sizes, without reading data.
  [[nodiscard]] virtual absl::StatusOr<DatasetStats> GetStats(std::string_view dataset) = 0;
  /// Removes expired and surplus cells from disk now rather than eventually. Reads return the same as before.
  ///
  /// progress  may be null. If it returns false: CANCELLED, and what was done stays done.
  [[nodiscard]] virtual absl::StatusOr<ReclaimResult> Compact(std::string_view dataset,
                                                              const Progress& progress) = 0;

  /// Returns changes of a dataset that keeps them (DatasetSpec::keep_changes_ms): every write of a client
  /// that was acknowledged, at least once, and those of each column, object or entry in the order of its
  /// writes. Never waits: the page is empty if there are none yet. Data that expires or becomes surplus is no
  /// change.
  ///
  /// from  a token of Change or ChangePage, with which anybody can go on, in any process and after any
  /// restart;
  ///       or kChangesFromBegin, kChangesFromNow.
  ///
  /// To have all of a dataset and then follow it, read a page from kChangesFromNow, scan the dataset, and go
  /// on with the page's token.
  ///
  /// FAILED_PRECONDITION if the dataset keeps no changes. INVALID_ARGUMENT for a token of another dataset,
  /// also one of the same name that was dropped. OUT_OF_RANGE if some after the token are not kept any more,
  /// or were lost with the last writes before a power failure: nothing is left out silently. Whoever follows
  /// the dataset must then begin again.
  [[nodiscard]] virtual absl::StatusOr<ChangePage> ReadChanges(std::string_view dataset,
                                                               std::string_view from,
                                                               const ChangeOptions& options) = 0;
  /// Follows a dataset: the stream returns what ReadChanges returns, and waits where there is nothing yet.
  /// Over the network the server tells what is written as it is written; a connection that is lost is made
  /// again, and the stream goes on where it was. Arguments and errors are those of ReadChanges.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<ChangeStream>> WatchChanges(std::string_view dataset,
                                                                                   std::string_view from) = 0;
  /// Notes how far somebody who follows the dataset has come, under a name. Changes after the token are kept
  /// until the token has passed them, also if they are older than keep_changes_ms; a dataset keeps no more
  /// than 4 GiB of changes all the same, and a follower that falls behind so far has to begin again
  /// (OUT_OF_RANGE).
  ///
  /// name   1 to kMaxConsumerNameBytes letters, digits, '_', '-' and '.'. RESOURCE_EXHAUSTED if it is new and
  ///        there are kMaxConsumers.
  /// token  as `from` of ReadChanges, with the same errors.
  ///
  /// On MySQL the logs are not kept for it; a place that it has passed is FAILED_PRECONDITION.
  [[nodiscard]] virtual absl::Status SetConsumer(std::string_view dataset, std::string_view name,
                                                 std::string_view token) = 0;
  /// Returns all of them, by name.
  [[nodiscard]] virtual absl::StatusOr<std::vector<ChangeConsumer>> ListConsumers(
      std::string_view dataset) = 0;
  /// Forgets one, so that nothing is kept for it. NOT_FOUND if there is none of that name.
  [[nodiscard]] virtual absl::Status DropConsumer(std::string_view dataset, std::string_view name) = 0;

  // ---- rows ----

  /// Returns one page of a row: columns in ascending byte order, cells newest first.
  ///
  /// row      1 to 1,024 bytes, any bytes.
  /// options  which columns, versions, time range, page size, and the marker to continue from.
  ///
  /// **As long as there is a marker, more may follow, whatever the page contains.** A page ends before it has
  /// `limit` columns when it has `max_bytes` (over the network 4 MiB), or after about a million cells were
  /// skipped that are expired, deleted or not asked for (MySQL: 2,048 columns without a cell to return). Then
  /// it may have no columns at all. Continue with the marker until it is empty:
  ///
  ///   ReadOptions options;
  ///   do {
  ///     auto page = store.GetRow("events", "user:7", options);
  ///     ...
  ///     options.marker = page->marker;
  ///   } while (!options.marker.empty());
  ///
  /// A column's visible cells are its newest max_versions unexpired ones; `versions` and `time_range` select
  /// among those. A row that does not exist is an empty Row, not an error. Writes between two pages make the
  /// read neither skip nor repeat a column that existed throughout. A marker of another dataset or row, or
  /// one that was changed, is INVALID_ARGUMENT. On an embedded store a page costs one seek plus the cells
  /// returned. Source: "Get Row" of Pinterest's Rockstorewidecolumn.
  [[nodiscard]] virtual absl::StatusOr<Row> GetRow(std::string_view dataset, std::string_view row,
                                                   const ReadOptions& options) = 0;

  /// Writes cells of one row, all or none.
  ///
  /// cells  at least one; each (column, timestamp) at most once; names and values at most 8 MiB together.
  ///
  /// (row, column, timestamp) identifies a cell: writing it again overwrites it. Cells without a timestamp
  /// get one from the store, in ms, which no other put of this row gets, and which is later than all that
  /// were assigned to this row before. ALREADY_EXISTS or FAILED_PRECONDITION if the condition does not hold;
  /// nothing is written then.
  [[nodiscard]] virtual absl::StatusOr<PutResult> PutRow(std::string_view dataset, std::string_view row,
                                                         std::span<const CellWrite> cells,
                                                         const WriteOptions& options) = 0;

  /// Removes a row, columns or cells as they exist at this moment, all or none. A later put with an older
  /// timestamp is visible. Deleting what does not exist is OK.
  [[nodiscard]] virtual absl::Status DeleteRow(std::string_view dataset, std::string_view row,
                                               const DeleteOptions& options) = 0;

  /// Batches of 1 to 10,000 rows. The outer status concerns the call (dataset, size); each row then succeeds
  /// or fails on its own. Answers are in the order asked. A batch is not atomic.
  ///
  /// Each row that GetRows returns is a page like that of GetRow, which may end early, or be empty, and then
  /// has a marker. A batch reads about 64 MiB; the rows after that fail with RESOURCE_EXHAUSTED, which
  /// IsPaused (backend_api/scan_budget.h) recognises, and were not read: ask for them in another batch.
  [[nodiscard]] virtual absl::StatusOr<std::vector<absl::StatusOr<Row>>> GetRows(
      std::string_view dataset, std::span<const RowRead> reads) = 0;
  [[nodiscard]] virtual absl::StatusOr<std::vector<absl::StatusOr<PutResult>>> PutRows(
      std::string_view dataset, std::span<const RowWrite> writes) = 0;
  [[nodiscard]] virtual absl::StatusOr<std::vector<absl::Status>> DeleteRows(
      std::string_view dataset, std::span<const RowDelete> deletes) = 0;

  /// Returns a cursor over the rows of `range` that have something to return. On an embedded store they come
  /// in byte order of their keys; on shards, in that order within each shard. `range` may name a shard (see
  /// ListPartitions); INVALID_ARGUMENT if there is none of that name. A row is read as it is at one moment;
  /// different rows may be read at different moments.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<RowCursor>> ScanRows(std::string_view dataset,
                                                                            const RowRange& range,
                                                                            const ScanOptions& options) = 0;
  /// Returns about `wanted` (1..65536) ranges of similar size that together cover the dataset, for parallel
  /// scans. Works for datasets of all shapes: ScanRows takes Partition::range, ScanObjects and ScanMappings
  /// take Partition::ids.
  [[nodiscard]] virtual absl::StatusOr<std::vector<Partition>> ListPartitions(std::string_view dataset,
                                                                              size_t wanted) = 0;

  // ---- objects ----

  /// Stores a JSON object (at most 4 MiB of text, nested at most 100 deep) and returns its new ID.
  [[nodiscard]] virtual absl::StatusOr<uint64_t> CreateObject(std::string_view dataset, std::string_view data,
                                                              const CreateOptions& options) = 0;
  /// Returns an object. NOT_FOUND if there is none, or if it was deleted softly and `include_inactive` is not
  /// set. INVALID_ARGUMENT if the ID is malformed or of another dataset's type.
  [[nodiscard]] virtual absl::StatusOr<Object> GetObject(std::string_view dataset, uint64_t id,
                                                         const ObjectReadOptions& options) = 0;
  /// Returns 1 to 10,000 objects, each with its own status, as GetRows: those after about 64 MiB were not
  /// read, and must be asked for in another batch.
  [[nodiscard]] virtual absl::StatusOr<std::vector<absl::StatusOr<Object>>> GetObjects(
      std::string_view dataset, std::span<const uint64_t> ids, const ObjectReadOptions& options) = 0;
  /// Read-modify-write in one transaction; returns the object as written. The result of `transform` must be a
  /// JSON object.
  [[nodiscard]] virtual absl::StatusOr<Object> UpdateObject(std::string_view dataset, uint64_t id,
                                                            const ObjectTransform& transform,
                                                            const UpdateOptions& options) = 0;
  /// UpdateObject by a JSON merge patch (RFC 7396), which must be a JSON object.
  [[nodiscard]] virtual absl::StatusOr<Object> PatchObject(std::string_view dataset, uint64_t id,
                                                           std::string_view merge_patch,
                                                           const UpdateOptions& options) = 0;
  /// Deletes an object. NOT_FOUND if there is none.
  ///
  /// hard  false: sets `"active": false`, which hides the object from reads; OK if that was so already.
  ///       True: removes the object for good; its ID is never used again.
  [[nodiscard]] virtual absl::Status DeleteObject(std::string_view dataset, uint64_t id, bool hard) = 0;
  /// Returns one page of the objects whose IDs are in `range`, in ascending order of their IDs. All objects
  /// of a dataset have its type, so this is the order of shards, and of local IDs within each shard.
  ///
  /// **As long as there is a marker, more may follow, whatever the page contains.** A page ends before it has
  /// `limit` objects when it has `max_bytes` (over the network 4 MiB), or after it has looked at some ten
  /// thousand objects that are deleted, or on MySQL at some dozens of shards. Then it may have no objects at
  /// all. Continue with the marker until it is empty:
  ///
  ///   ObjectScanOptions options;
  ///   do {
  ///     auto page = store.ScanObjects("pins", {}, options);
  ///     ...
  ///     options.marker = page->marker;
  ///   } while (!options.marker.empty());
  ///
  /// An object that exists from the first page to the last is returned exactly once, as it is at one moment;
  /// different objects may be read at different moments. An object that is created meanwhile may be returned
  /// or not. One that was deleted before its page was read is not returned; nor is one that was deleted
  /// softly, unless `include_inactive` is set.
  ///
  /// Nothing is held between two pages, and all backends have the same order: a scan goes on with its marker
  /// in another process, after a restart, and on the other backend after the dataset has migrated. A page
  /// that is asked for during the cutover waits for its end, as every read. INVALID_ARGUMENT for a marker of
  /// another dataset or of another kind of scan, for one that was changed, and for one that lies outside of
  /// `range`.
  [[nodiscard]] virtual absl::StatusOr<ObjectPage> ScanObjects(std::string_view dataset, const IdRange& range,
                                                               const ObjectScanOptions& options) = 0;

  // ---- mappings ----

  /// Adds the entry (from, to); adding it again changes its sequence. The default sequence is the present
  /// time in ms. IDs are below 2^62.
  [[nodiscard]] virtual absl::Status AddMapping(std::string_view dataset, uint64_t from, uint64_t to,
                                                std::optional<uint64_t> sequence) = 0;
  /// Removes an entry; returns whether there was one.
  [[nodiscard]] virtual absl::StatusOr<bool> RemoveMapping(std::string_view dataset, uint64_t from,
                                                           uint64_t to) = 0;
  /// Returns a page of the entries of `from` by (sequence, to). A marker of another dataset, ID or order is
  /// INVALID_ARGUMENT.
  [[nodiscard]] virtual absl::StatusOr<MappingPage> ListMapping(std::string_view dataset, uint64_t from,
                                                                const MappingListOptions& options) = 0;
  [[nodiscard]] virtual absl::StatusOr<uint64_t> CountMapping(std::string_view dataset, uint64_t from) = 0;
  /// Returns one page of the entries whose `from` is in `range`, in ascending order of (from, to), whatever
  /// their sequences. Pages, markers and what changes meanwhile are as in ScanObjects. An entry whose
  /// sequence changes during the scan is returned once, with one of its sequences.
  [[nodiscard]] virtual absl::StatusOr<ScannedMappingPage> ScanMappings(
      std::string_view dataset, const IdRange& range, const MappingScanOptions& options) = 0;
  /// Returns a page of the mapping joined with the object that each entry points to, which is found by the
  /// type number in its ID. The page ends before `limit` entries when the objects have `max_bytes` together:
  /// as long as there is a marker, more entries follow.
  [[nodiscard]] virtual absl::StatusOr<JoinedPage> ListObjects(std::string_view dataset, uint64_t from,
                                                               const MappingListOptions& options) = 0;
};

}  // namespace kvstore
