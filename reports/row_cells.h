#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/kvstore.h"

namespace kvstore::reports {

/// Columns of a row that are to be read.
struct CellsWanted {
  std::string row;
  std::vector<std::string> columns;
};

/// The newest cell of each column that is there.
using Cells = std::map<std::string, Cell>;

/// Reads named columns of rows, an answer for each in the order asked. Cells of one row may be of different
/// moments.
absl::StatusOr<std::vector<absl::StatusOr<Cells>>> ReadCells(KVStore& store, const std::string& dataset,
                                                             std::span<const CellsWanted> wanted);

}  // namespace kvstore::reports
