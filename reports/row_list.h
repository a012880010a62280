#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/kvstore.h"
#include "reports/row_key.h"
#include "reports/rows.h"

/// Which rows there are, by their small cells: no chunk is read. No scan is open while a piece of the list is
/// worked on, so that this may take its time.
namespace kvstore::reports {

/// A row of points with its version.
struct ListedRow {
  RowKey key;
  RowVersion version;
};

/// The state of a row, by its small cells. A caller that reads a row in pieces, and finds the same state
/// before and after that, has read the row as it was at one moment: nobody wrote to it, or compacted it.
struct RowState {
  std::optional<RowVersion> version;
  std::optional<std::string> generation;

  static RowState Of(const StoredRow& row) { return {row.version, row.generation}; }
  friend bool operator==(const RowState&, const RowState&) = default;
};
absl::StatusOr<RowState> ReadRowState(KVStore& store, const std::string& dataset, const RowKey& key);

using TakeListed = std::function<absl::Status(std::span<const ListedRow>)>;
/// Gives the rows of points in a range of keys to `take`, some hundreds at a time. An error from it ends the
/// walk with that error. If the dataset is cut over to another backend meanwhile, rows may be given twice.
absl::Status ListRows(KVStore& store, const std::string& dataset, const KeyRange& range,
                      const TakeListed& take);

/// The keys of the rows that are wanted: where that could be more than kMaxListedRows, those that are there;
/// else all that could be.
absl::StatusOr<std::vector<RowKey>> KeysOf(KVStore& store, const std::string& dataset,
                                           const RowsWanted& wanted);

/// The keys of the rows that are wanted and there.
absl::StatusOr<std::vector<RowKey>> ExistingKeysOf(KVStore& store, const std::string& dataset,
                                                   const RowsWanted& wanted);

using TakeKeys = std::function<absl::Status(std::span<const RowKey>)>;
/// Gives the rows of roll-ups in a range of keys to `take`, by the keys of their rows of points; otherwise as
/// ListRows.
absl::Status ListRollupRows(KVStore& store, const std::string& dataset, const KeyRange& range,
                            const TakeKeys& take);

}  // namespace kvstore::reports
