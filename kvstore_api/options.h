#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvstore_api/limits.h"
#include "kvstore_api/types.h"

/// How a call is to be carried out. Defaults are what most callers want.
namespace kvstore {

/// [start, end) in ms: start inclusive, end exclusive.
struct TimeRange {
  uint64_t start = 0;
  uint64_t end = kMaxTimestamp + 1;
};

/// What to read of a row.
struct ReadOptions {
  /// Only these columns, in any order; nullopt: all. An empty list is INVALID_ARGUMENT.
  std::optional<std::vector<std::string>> columns;
  /// At most this many cells a column, newest first; at least 1. More than the dataset's max_versions gives
  /// max_versions.
  uint32_t versions = 1;
  TimeRange time_range;
  /// A page ends after this many columns (at least 1) ...
  uint32_t limit = 100;
  /// ... or before it would pass this many bytes of column names and values (1..kMaxPageBytes), or
  /// kMaxPageCells cells. A single cell that is larger than this is a page of its own, so that each page
  /// goes on. A server ends pages at kMaxWireBytes already.
  size_t max_bytes = kDefaultPageBytes;
  /// Row::marker of the page before; empty for the first page.
  std::string marker;
};

/// Must hold for a put to happen, checked atomically with it.
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

/// What to delete of a row. Neither given: the whole row. A list that is given must not be empty.
struct DeleteOptions {
  std::optional<std::vector<std::string>> columns;  ///< All versions of these columns.
  /// Just these cells. FAILED_PRECONDITION unless the dataset keeps all versions (max_versions = 0):
  /// elsewhere what a removed version uncovers would depend on compaction. Not together with `columns`.
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

/// What to read of each row of a scan.
struct ScanOptions {
  std::optional<std::vector<std::string>>
      columns;  ///< As in ReadOptions; a row without any of them is not returned.
  uint32_t versions = 1;
  TimeRange time_range;
  size_t max_bytes = kDefaultScanBytes;  ///< Rows larger than this are returned in pieces; 1..kMaxPageBytes.
  std::string marker;                    ///< RowCursor::marker() to read on from; empty to start.
};

/// Where a new object is to live. At most one of `near` and `shard`; none: on any open shard.
struct CreateOptions {
  /// Makes the create safe to repeat: 16 random bytes, the same each time. For a day the same request_id in
  /// the same dataset, with the same `near` and `shard`, gives the same object. Without a place it chooses
  /// one shard, and the create fails while that is down. Empty: every create makes an object.
  std::string request_id;
  /// The request_id is new, and nobody has tried it before: saves looking for what it has made where objects
  /// went before shards were opened or weights were set. Not for a request_id that is tried again.
  bool first_attempt = false;
  std::optional<uint64_t> near;   ///< On the shard of this ID, so that what is read together lies together.
  std::optional<uint32_t> shard;  ///< On this shard, 0..65535.
};

struct DropOptions {
  /// Drop only if the dataset is this one (DatasetSpec::incarnation); 0: whichever has the name.
  uint64_t incarnation = 0;
};

struct ObjectReadOptions {
  bool include_inactive = false;  ///< Also return objects that were deleted softly.
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
  uint64_t offset = 0;              ///< Entries to skip; costs a step each: page by marker instead.
  /// ListObjects: a page ends before it would pass this many bytes of objects (1..kMaxPageBytes); it holds at
  /// least one entry.
  size_t max_bytes = kDefaultPageBytes;
  std::string marker;  ///< MappingPage::marker of the page before, same order. Not with an offset.
};

}  // namespace kvstore
