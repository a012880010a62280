#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvstore_api/limits.h"
#include "kvstore_api/types.h"

/// Options of calls. The defaults are what most callers want.
namespace kvstore {

/// [start, end) in ms: start inclusive, end exclusive.
struct TimeRange {
  uint64_t start = 0;
  uint64_t end = kMaxTimestamp + 1;
  friend bool operator==(const TimeRange&, const TimeRange&) = default;
};

/// Selects what to read of a row.
struct ReadOptions {
  /// Only these columns, in any order; nullopt: all. An empty list is INVALID_ARGUMENT.
  std::optional<std::vector<std::string>> columns;
  /// At most this many cells of each column, newest first; at least 1. The dataset's max_versions limits it,
  /// too.
  uint32_t versions = 1;
  TimeRange time_range;
  /// A page ends after this many columns (at least 1) ...
  uint32_t limit = 100;
  /// ... or before it would exceed this many bytes of column names and values (1..kMaxPageBytes), or
  /// kMaxPageCells cells. A cell that is larger than that is a page of its own, so that each page makes
  /// progress. A server ends pages at kMaxWireBytes. If many cells have to be skipped, a page ends earlier,
  /// possibly empty: see KVStore::GetRow.
  size_t max_bytes = kDefaultPageBytes;
  /// Row::marker of the page before; empty for the first page.
  std::string marker;
  /// The first page begins after this column, in byte order, whether there is such a column or not; nullopt:
  /// with the first column. Not looked at where there is a marker.
  std::optional<std::string> after_column;
};

/// A condition under which a put is made; checked atomically with it.
struct Condition {
  std::string_view column;
  /// nullopt: the column has no visible cell (else ALREADY_EXISTS). A value: the newest visible cell of the
  /// column has this value (else FAILED_PRECONDITION).
  std::optional<std::string_view> equals;
};

struct WriteOptions {
  std::optional<Condition> condition;
  /// Force the write to stable storage before the answer, whatever the dataset's durability.
  bool sync = false;
};

/// Selects what to delete of a row; without either list the whole row. A list that is given must not be
/// empty.
struct DeleteOptions {
  std::optional<std::vector<std::string>> columns;  ///< All versions of these columns.
  /// Only these cells. FAILED_PRECONDITION unless the dataset keeps all versions (max_versions = 0):
  /// otherwise it would depend on compaction which older version becomes visible. Not together with
  /// `columns`.
  std::optional<std::vector<CellName>> cells;
};

struct RowRead {
  std::string_view row;
  ReadOptions options;
};

struct RowWrite {
  std::string_view row;
  std::span<const CellWrite> cells;
  WriteOptions options;
};

struct RowDelete {
  std::string_view row;
  DeleteOptions options;
};

/// Selects what to read of each row of a scan.
struct ScanOptions {
  std::optional<std::vector<std::string>>
      columns;  ///< As in ReadOptions; a row without any of them is not returned.
  uint32_t versions = 1;
  TimeRange time_range;
  size_t max_bytes = kDefaultScanBytes;  ///< Rows larger than this are returned in pieces; 1..kMaxPageBytes.
  std::string marker;                    ///< RowCursor::marker() to continue from; empty to start.
};

/// Where a new object is placed. At most one of `near` and `shard`; without either, on any open shard.
struct CreateOptions {
  /// Makes the create idempotent: 16 random bytes, the same in each attempt. For a day, creates with the same
  /// request_id, dataset, `near` and `shard` return the same object. If no place is given, the request_id
  /// determines the shard, and the create fails while that shard is down. Empty: not idempotent.
  std::string request_id;
  /// Promises that this is the first attempt with the request_id. That saves searching for an object of an
  /// earlier attempt on the shards where it would have gone before shards were opened or weights were
  /// changed.
  bool first_attempt = false;
  std::optional<uint64_t>
      near;  ///< On the shard of this ID, so that what is read together is stored together.
  std::optional<uint32_t> shard;  ///< On this shard, 0..65535.
};

struct DropOptions {
  /// Drop only the dataset of this incarnation (DatasetSpec::incarnation); 0: whichever has the name.
  uint64_t incarnation = 0;
};

struct ObjectReadOptions {
  bool include_inactive = false;  ///< Also return objects that were deleted softly.
};

/// Selects what a page of a scan of objects has.
struct ObjectScanOptions {
  bool include_inactive = false;  ///< Also return objects that were deleted softly.
  uint32_t limit = 1000;          ///< A page ends after this many objects, 1..kMaxListEntries, ...
  /// ... or before it would exceed this many bytes of JSON (1..kMaxPageBytes). An object that is larger is a
  /// page of its own. A server ends pages at kMaxWireBytes.
  size_t max_bytes = kDefaultPageBytes;
  std::string marker = {};  ///< ObjectPage::marker of the page before; empty for the first page.
};

struct UpdateOptions {
  /// Update only if the object's timestamp is still this one; else FAILED_PRECONDITION.
  std::optional<uint64_t> expected_timestamp;
  bool include_inactive = false;  ///< Also update objects that were deleted softly (to bring one back, say).
};

struct MappingListOptions {
  enum class Order { kAscending, kDescending };
  Order order = Order::kAscending;  ///< By sequence.
  uint32_t limit = 100;             ///< Entries of a page, 1..kMaxListEntries.
  uint64_t offset = 0;              ///< Entries to skip. Each one costs time, so prefer a marker.
  /// ListObjects: a page ends before it would exceed this many bytes of objects (1..kMaxPageBytes), but has
  /// at least one entry.
  size_t max_bytes = kDefaultPageBytes;
  std::string marker;  ///< MappingPage::marker of the page before, same order. Not with an offset.
};

/// Selects what a page of a scan of mappings has.
struct MappingScanOptions {
  uint32_t limit = 1000;    ///< Entries of a page, 1..kMaxListEntries.
  std::string marker = {};  ///< ScannedMappingPage::marker of the page before; empty for the first page.
};

}  // namespace kvstore
