#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/limits.h"

/// The data that calls of a KVStore take and return. Plain values. Views (std::string_view, std::span) are
/// used only in arguments, and need to live no longer than the call.
namespace kvstore {

// ---- rows ----

/// One version of a column, identified by (row, column, timestamp).
struct Cell {
  uint64_t timestamp = 0;  ///< Milliseconds, 0..kMaxTimestamp.
  std::string value;
  friend bool operator==(const Cell&, const Cell&) = default;
};

/// One column of a row as read: at least one cell, newest first.
struct Item {
  std::string column;
  std::vector<Cell> cells;
  friend bool operator==(const Item&, const Item&) = default;
};

/// One page of a row: columns in ascending byte order. A row that does not exist has no items and no marker.
struct Row {
  std::vector<Item> items;
  /// Empty: this was the last page. Else pass it as ReadOptions::marker to continue, even if the page has
  /// fewer columns than were asked for, or none, because many cells had to be skipped.
  std::string marker;
};

/// A row, or a piece of a large one, as a scan returns it: at least one item.
struct ScannedRow {
  std::string key;
  std::vector<Item> items;
  /// The row was too large for one piece; the next one has the same key and starts where this one ends.
  bool continues = false;
};

/// One cell to write. Without a timestamp the store assigns one, the same for all such cells of a put.
struct CellWrite {
  std::string_view column;
  std::string_view value;
  std::optional<uint64_t> timestamp;
};

struct PutResult {
  /// The timestamp that the store assigned; none if every cell brought its own.
  std::optional<uint64_t> timestamp;
};

/// Identifies a cell within a row.
struct CellName {
  std::string column;
  uint64_t timestamp = 0;
};

/// Row keys from `start` (inclusive) to `end` (exclusive). Empty: from the first, to the last.
struct RowRange {
  std::string start;
  std::string end;
  /// Only rows of this shard, as a Partition names it; empty: of all. An embedded store has no shards.
  std::string shard;
  friend bool operator==(const RowRange&, const RowRange&) = default;
};

/// IDs from `start` (inclusive) to `end` (exclusive); all of them by default.
struct IdRange {
  uint64_t start = 0;
  uint64_t end = kMaxId + 1;
  friend bool operator==(const IdRange&, const IdRange&) = default;
};

/// A part of a dataset that can be scanned on its own, in parallel with the others. The partitions of one
/// listing cover the dataset and do not overlap.
struct Partition {
  std::string name;  ///< For people and for logs.
  RowRange range;    ///< The rows of the partition.
  IdRange ids = {};  ///< The IDs of its objects, or the `from` of its mappings' entries.
};

// ---- objects ----

/// A JSON document with a 64-bit ID (see idgen/object_id.h for its parts).
struct Object {
  uint64_t id = 0;
  std::string data;  ///< The text of a JSON object.
  uint64_t timestamp =
      0;  ///< When it was last changed, ms. Grows with every change: it serves as its version.
};

/// A page of a scan of objects, in ascending order of their IDs.
struct ObjectPage {
  std::vector<Object> objects;
  /// Empty: this was the last page. Else pass it as ObjectScanOptions::marker to continue, even if the page
  /// has fewer objects than were asked for, or none.
  std::string marker;
};

/// Computes an object's new JSON text from its current one. May be called more than once for an update, and
/// under a lock of the store, so it must not call the store. If it returns an error, the update fails with
/// that error.
using ObjectTransform = std::function<absl::StatusOr<std::string>(std::string_view current)>;

// ---- mappings ----

/// One entry of a mapping. Entries are ordered by (sequence, to).
struct MappingEntry {
  uint64_t to = 0;
  uint64_t sequence = 0;  ///< 0..kMaxTimestamp; the time of adding in ms unless the caller gave one.
  friend bool operator==(const MappingEntry&, const MappingEntry&) = default;
};

struct MappingPage {
  std::vector<MappingEntry> entries;
  /// Empty: this was the last page. Else pass it as MappingListOptions::marker to continue; the page then has
  /// as many entries as were asked for.
  std::string marker;
};

/// One entry of a mapping as a scan returns it, with the ID that it belongs to.
struct ScannedMapping {
  uint64_t from = 0;
  uint64_t to = 0;
  uint64_t sequence = 0;
  friend bool operator==(const ScannedMapping&, const ScannedMapping&) = default;
};

/// A page of a scan of mappings, in ascending order of (from, to).
struct ScannedMappingPage {
  std::vector<ScannedMapping> entries;
  std::string marker;  ///< As in ObjectPage, for MappingScanOptions::marker.
};

/// One entry of ListObjects: the mapping's entry and the object it points to, or why there is none.
struct JoinedObject {
  MappingEntry entry;
  absl::StatusOr<Object> object;
};

struct JoinedPage {
  std::vector<JoinedObject> objects;
  std::string marker;  ///< As in MappingPage, but the page may have fewer entries, at least one (max_bytes).
};

// ---- long work ----

/// Called now and then by long work with the bytes that are done and the bytes in all (an estimate, which may
/// grow). Returns false to stop the work, which then ends with CANCELLED and may be started again.
using Progress = std::function<bool(uint64_t done, uint64_t total)>;

/// The result of Compact.
struct ReclaimResult {
  uint64_t bytes_before = 0;  ///< On disk.
  uint64_t bytes_after = 0;
  uint64_t expired_cells = 0;  ///< Cells removed because their time to live had passed.
  uint64_t surplus_cells = 0;  ///< Cells removed because max_versions newer ones exist.
};

/// Rough sizes of a dataset, which the backend knows without reading data.
struct DatasetStats {
  uint64_t approximate_bytes = 0;
  uint64_t approximate_entries = 0;  ///< Cells, objects or mapping entries, including stale ones.
};

}  // namespace kvstore
