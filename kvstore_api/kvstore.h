#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/dataset.h"
#include "kvstore_api/options.h"
#include "kvstore_api/types.h"

namespace kvstore {

/// Walks the rows of a range, pulled by its caller. Holds resources of the store: must be gone before the
/// store is. Externally synchronised; several cursors can run in parallel.
class RowCursor {
 public:
  virtual ~RowCursor() = default;

  /// Reads the next row, or the next piece of a large one, into `row`, whose memory is reused. False at the
  /// end.
  [[nodiscard]] virtual absl::StatusOr<bool> Next(ScannedRow& row) = 0;

  /// A token with which ScanRows goes on behind the row that Next returned last, also in another process;
  /// empty before the first row.
  [[nodiscard]] virtual std::string marker() const = 0;
};

/// The store: datasets, and three shapes of data in them. One interface for every backend, in process
/// (`kvstore::Open`, registry/open.h) and over the network.
///
/// Thread-safe. A CallScope (call_scope.h) limits how long calls take. Every call on data takes the dataset's
/// name first: NOT_FOUND if there is none, FAILED_PRECONDITION if it has another shape. Beyond the limits of
/// limits.h: INVALID_ARGUMENT with the field and the limit, nothing changed. Bytes that do not decode are
/// DATA_LOSS, a full disk RESOURCE_EXHAUSTED, a host that is unreachable UNAVAILABLE. When a write returns OK
/// it survives what the dataset's durability says.
class KVStore {
 public:
  virtual ~KVStore() = default;

  // ---- datasets ----

  /// Creates an empty dataset. INVALID_ARGUMENT names a bad field; ALREADY_EXISTS if the name, or the type
  /// number of objects, is taken. An `incarnation` of 0 is chosen by the store; with another one, creating
  /// the dataset that has it already is OK.
  [[nodiscard]] virtual absl::Status CreateDataset(const DatasetSpec& spec) = 0;
  /// Changes settings, in force for every call that starts after it returns; where several processes share a
  /// catalog, in the others within a second.
  /// Lowering max_versions or ttl_ms hides cells at once; raising one may show again what is not yet removed.
  [[nodiscard]] virtual absl::Status AlterDataset(std::string_view dataset, const DatasetChange& change) = 0;
  /// Removes the dataset and all of its data.
  [[nodiscard]] virtual absl::Status DropDataset(std::string_view dataset, const DropOptions& options) = 0;
  [[nodiscard]] virtual absl::StatusOr<DatasetSpec> GetDataset(std::string_view dataset) = 0;
  /// By name, ascending.
  [[nodiscard]] virtual absl::StatusOr<std::vector<DatasetSpec>> ListDatasets() = 0;
  /// Rough sizes; costs no read of data.
  [[nodiscard]] virtual absl::StatusOr<DatasetStats> GetStats(std::string_view dataset) = 0;
  /// Removes expired and surplus cells from disk now rather than in time. No read changes its answer.
  /// `progress` may be null; if it says stop: CANCELLED, and what was done stays done.
  [[nodiscard]] virtual absl::StatusOr<ReclaimResult> Compact(std::string_view dataset,
                                                              const Progress& progress) = 0;

  // ---- rows ----

  /// Returns one page of a row: columns in ascending byte order, cells newest first.
  ///
  /// row      1 to 1,024 bytes, any bytes.
  /// options  which columns, versions, time range, page size, and the marker to go on from.
  ///
  /// A column's visible cells are its newest max_versions unexpired ones; versions and time range choose
  /// among those. A row that does not exist is an empty Row, not an error. When columns remain, Row::marker
  /// continues the read, and writes between two pages make it neither skip nor repeat a column that existed
  /// throughout. A marker of another dataset or row, or a tampered one, is INVALID_ARGUMENT. Embedded, one
  /// page costs one seek plus the cells returned. Source: "Get Row" of Pinterest's Rockstorewidecolumn.
  [[nodiscard]] virtual absl::StatusOr<Row> GetRow(std::string_view dataset, std::string_view row,
                                                   const ReadOptions& options) = 0;

  /// Writes cells of one row, all or none.
  ///
  /// cells    at least one; a (column, timestamp) at most once; names and values at most 8 MiB together.
  ///
  /// (row, column, timestamp) names a cell: writing it again overwrites it. Cells without a timestamp get one
  /// from the store, in ms, that no other put of this row gets, and that is later than all it assigned to
  /// this row before. ALREADY_EXISTS or FAILED_PRECONDITION if the condition does not hold; nothing is
  /// written then.
  [[nodiscard]] virtual absl::StatusOr<PutResult> PutRow(std::string_view dataset, std::string_view row,
                                                         std::span<const CellWrite> cells,
                                                         const WriteOptions& options) = 0;

  /// Removes what exists at this moment, all or none: the row, columns, or cells. A later put with an older
  /// timestamp is visible. Deleting what is not there is OK.
  [[nodiscard]] virtual absl::Status DeleteRow(std::string_view dataset, std::string_view row,
                                               const DeleteOptions& options) = 0;

  /// Batches of 1 to 10,000. The outer status is about the call (dataset, size); each row then succeeds or
  /// fails on its own, answers in the order asked. Rows of a batch are not atomic together.
  [[nodiscard]] virtual absl::StatusOr<std::vector<absl::StatusOr<Row>>> GetRows(
      std::string_view dataset, std::span<const RowRead> reads) = 0;
  [[nodiscard]] virtual absl::StatusOr<std::vector<absl::StatusOr<PutResult>>> PutRows(
      std::string_view dataset, std::span<const RowWrite> writes) = 0;
  [[nodiscard]] virtual absl::StatusOr<std::vector<absl::Status>> DeleteRows(
      std::string_view dataset, std::span<const RowDelete> deletes) = 0;

  /// A cursor over the rows of `range` that have something to return, in byte order of the key on an embedded
  /// store, on shards in that order within each shard; `range` may name one (see ListPartitions),
  /// INVALID_ARGUMENT if there is none of that name. A row is read as it is at one moment; different rows may
  /// be read at different moments.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<RowCursor>> ScanRows(std::string_view dataset,
                                                                            const RowRange& range,
                                                                            const ScanOptions& options) = 0;
  /// About `wanted` (1..65536) ranges of similar size that together cover the dataset, for scans in parallel.
  [[nodiscard]] virtual absl::StatusOr<std::vector<Partition>> ListPartitions(std::string_view dataset,
                                                                              size_t wanted) = 0;

  // ---- objects ----

  /// Stores a JSON object (at most 4 MiB of text, nested at most 100 deep) and returns its new ID.
  [[nodiscard]] virtual absl::StatusOr<uint64_t> CreateObject(std::string_view dataset, std::string_view data,
                                                              const CreateOptions& options) = 0;
  /// NOT_FOUND if there is none, or only one that was deleted softly and `include_inactive` is not set.
  /// INVALID_ARGUMENT if the ID is malformed or of another dataset's type.
  [[nodiscard]] virtual absl::StatusOr<Object> GetObject(std::string_view dataset, uint64_t id,
                                                         const ObjectReadOptions& options) = 0;
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
  /// Softly: sets `"active": false`, which hides it from reads; OK if it was so already. Hard: removes it for
  /// good. Its ID is never used again. NOT_FOUND if there is none.
  [[nodiscard]] virtual absl::Status DeleteObject(std::string_view dataset, uint64_t id, bool hard) = 0;

  // ---- mappings ----

  /// Adds (from, to); adding it again changes its sequence. Without a sequence: now, in ms. IDs are below
  /// 2^62.
  [[nodiscard]] virtual absl::Status AddMapping(std::string_view dataset, uint64_t from, uint64_t to,
                                                std::optional<uint64_t> sequence) = 0;
  /// Whether there was such an entry.
  [[nodiscard]] virtual absl::StatusOr<bool> RemoveMapping(std::string_view dataset, uint64_t from,
                                                           uint64_t to) = 0;
  /// One page of the entries of `from` by (sequence, to). A marker of another dataset, ID or order is
  /// INVALID_ARGUMENT.
  [[nodiscard]] virtual absl::StatusOr<MappingPage> ListMapping(std::string_view dataset, uint64_t from,
                                                                const MappingListOptions& options) = 0;
  [[nodiscard]] virtual absl::StatusOr<uint64_t> CountMapping(std::string_view dataset, uint64_t from) = 0;
  /// The join: a page of the mapping and the object behind each entry, found by the type number in its ID.
  [[nodiscard]] virtual absl::StatusOr<JoinedPage> ListObjects(std::string_view dataset, uint64_t from,
                                                               const MappingListOptions& options) = 0;
};

}  // namespace kvstore
