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

/// The last thing that a paginated read of a row returned; the next page starts right behind it. A value: it
/// can be kept, sent elsewhere, and used after a restart. Writes in between do not disturb it.
struct RowPosition {
  std::string column;
  /// 0: the column is done with. Else so many cells of it were returned, down to `timestamp`, and more may
  /// follow.
  uint32_t cells = 0;
  uint64_t timestamp = 0;
  friend bool operator==(const RowPosition&, const RowPosition&) = default;
};

struct RowPage {
  std::vector<Item> items;
  std::optional<RowPosition> next;  ///< Where to read on; none at the end of the row.
};

/// Where a scan stands: behind `row`, or inside it.
struct ScanPosition {
  std::string row;
  std::optional<RowPosition> inside;
  /// Of a backend that has its rows from elsewhere: in whose order they come. Set and read by the backend
  /// alone, and by the layer above for the backend itself.
  std::string order = {};
  friend bool operator==(const ScanPosition&, const ScanPosition&) = default;
};

/// Walks rows, pulled by its caller; bounded in memory. Externally synchronised.
class RowScan {
 public:
  virtual ~RowScan() = default;
  /// Reads the next row, or piece of one, into `row`, reusing its memory; false at the end.
  [[nodiscard]] virtual absl::StatusOr<bool> Next(ScannedRow& row) = 0;
  /// Behind what Next returned last; none before the first.
  [[nodiscard]] virtual std::optional<ScanPosition> position() const = 0;
};

/// The rows of one dataset in a backend. Thread-safe.
///
/// Arguments were checked against the limits of the data model before they come here. Markers are opened and
/// sealed above: `ReadOptions::marker` and `ScanOptions::marker` are not looked at, positions come as
/// arguments. The meaning of every call is that of KVStore; a backend that passes tests/backend_suite is
/// right.
class RowStore {
 public:
  virtual ~RowStore() = default;

  [[nodiscard]] virtual absl::StatusOr<RowPage> Get(std::string_view row, const ReadOptions& options,
                                                    const std::optional<RowPosition>& after) = 0;
  [[nodiscard]] virtual absl::StatusOr<PutResult> Put(std::string_view row, std::span<const CellWrite> cells,
                                                      const WriteOptions& options) = 0;
  [[nodiscard]] virtual absl::Status Delete(std::string_view row, const DeleteOptions& options) = 0;

  /// First pages of many rows, in the order asked. A backend groups and parallelises as it can.
  [[nodiscard]] virtual std::vector<absl::StatusOr<RowPage>> GetMany(std::span<const RowRead> reads) = 0;
  /// Each row succeeds or fails on its own; writes of the same row happen in the order given. Behind one that
  /// was refused because the dataset moves (moved.h), no further one of the same row is carried out: it is
  /// refused as well. That holds for DeleteMany, too.
  [[nodiscard]] virtual std::vector<absl::StatusOr<PutResult>> PutMany(std::span<const RowWrite> writes) = 0;
  [[nodiscard]] virtual std::vector<absl::Status> DeleteMany(std::span<const RowDelete> deletes) = 0;

  /// About `wanted` partitions of about equal size; at least one.
  [[nodiscard]] virtual absl::StatusOr<std::vector<Partition>> Partitions(size_t wanted) = 0;
  /// A row that is written while the scan runs is seen as before or as after the write.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<RowScan>> Scan(
      const RowRange& range, const ScanOptions& options, const std::optional<ScanPosition>& after) = 0;
};

}  // namespace kvstore
