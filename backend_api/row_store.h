#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/options.h"
#include "kvstore_api/types.h"

namespace kvstore {

/// The last cell that a page of a row returned; the next page starts right after it. A value, which can be
/// stored, sent elsewhere, and used after a restart. Writes in between do not invalidate it.
struct RowPosition {
  std::string column;
  /// 0: all cells of the column were returned. Else this many were, down to `timestamp`, and more may follow.
  uint32_t cells = 0;
  uint64_t timestamp = 0;
  friend bool operator==(const RowPosition&, const RowPosition&) = default;
};

struct RowPage {
  std::vector<Item> items;
  std::optional<RowPosition> next;  ///< Where the next page starts; none at the end of the row.
};

/// The position of a scan: after `row`, or inside it.
struct ScanPosition {
  std::string row;
  std::optional<RowPosition> inside;
  /// For a backend that reads its rows from elsewhere: identifies the order in which they come. The backend
  /// sets and reads it; the layer above adds the backend's own name in markers.
  std::string order = {};
  friend bool operator==(const ScanPosition&, const ScanPosition&) = default;
};

/// Reads rows one by one, with bounded memory. Externally synchronised.
class RowScan {
 public:
  virtual ~RowScan() = default;
  /// Reads the next row, or the next piece of a large one, into `row`, reusing its memory; false at the end.
  [[nodiscard]] virtual absl::StatusOr<bool> Next(ScannedRow& row) = 0;
  /// The position after what Next returned last; none before the first.
  [[nodiscard]] virtual std::optional<ScanPosition> position() const = 0;
};

/// The rows of one dataset in a backend. Thread-safe.
///
/// The router has checked all arguments against the limits of the data model, and opens and seals markers: a
/// backend ignores `ReadOptions::marker` and `ScanOptions::marker`, and gets positions as arguments instead.
/// Each call means what it means in KVStore; tests/backend_suite checks that.
class RowStore {
 public:
  virtual ~RowStore() = default;

  [[nodiscard]] virtual absl::StatusOr<RowPage> Get(std::string_view row, const ReadOptions& options,
                                                    const std::optional<RowPosition>& after) = 0;
  [[nodiscard]] virtual absl::StatusOr<PutResult> Put(std::string_view row, std::span<const CellWrite> cells,
                                                      const WriteOptions& options) = 0;
  [[nodiscard]] virtual absl::Status Delete(std::string_view row, const DeleteOptions& options) = 0;

  // Batches. By default the entries are carried out one after the other, which suffices where a call waits
  // for no other machine; a backend whose calls do wait groups them and makes them in parallel.

  /// Returns the first pages of many rows, in the order asked.
  [[nodiscard]] virtual std::vector<absl::StatusOr<RowPage>> GetMany(std::span<const RowRead> reads);
  /// Each row succeeds or fails on its own; writes of the same row are made in the order given. After a write
  /// that was refused because the dataset migrates (backend_api/outcome.h), all later writes of the same row
  /// are refused as well. The same holds for DeleteMany.
  [[nodiscard]] virtual std::vector<absl::StatusOr<PutResult>> PutMany(std::span<const RowWrite> writes);
  [[nodiscard]] virtual std::vector<absl::Status> DeleteMany(std::span<const RowDelete> deletes);

  /// Returns about `wanted` partitions of about equal size; at least one.
  [[nodiscard]] virtual absl::StatusOr<std::vector<Partition>> Partitions(size_t wanted) = 0;
  /// A row that is written while the scan runs is returned as it was before or after the write.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<RowScan>> Scan(
      const RowRange& range, const ScanOptions& options, const std::optional<ScanPosition>& after) = 0;
};

}  // namespace kvstore
