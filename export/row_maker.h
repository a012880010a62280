#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "backend_api/unit.h"
#include "export/pipe/batch_builder.h"
#include "export/pipe/table.h"
#include "export/table_columns.h"
#include "kvstore_api/dataset.h"

namespace kvstore::exports {

/// A row of a table has at most so many bytes.
inline constexpr size_t kMaxTableRowBytes = size_t{32} << 20;

/// Takes the rows of a table.
class RowSink {
 public:
  virtual ~RowSink() = default;
  /// Where the values of the next row are put.
  virtual pipe::BatchBuilder& rows() = 0;
  /// Ends that row. RESOURCE_EXHAUSTED if it has more than kMaxTableRowBytes; errors of where it goes.
  [[nodiscard]] virtual absl::Status EndRow() = 0;
};

/// Makes rows of a table from the units of a dataset. Externally synchronised.
///
///   rows, long  row, column, timestamp, value: a row for each cell
///   rows, wide  row, and the columns that were asked for with their newest values; rows without any of them
///               are left out
///   objects     id, shard, type, local_id, timestamp, data, and the fields that were asked for
///   mappings    from, to, sequence
class RowMaker {
 public:
  virtual ~RowMaker() = default;

  /// The columns of the table, in order.
  virtual const std::vector<pipe::Column>& columns() const = 0;
  /// Adds what a unit has; units come in order of their keys, those of a row one after another. DATA_LOSS if
  /// it is not of this shape; FAILED_PRECONDITION if a value has not the type of its column, and then says
  /// which one.
  ///
  /// unit  Its values may be taken.
  [[nodiscard]] virtual absl::Status Add(Unit& unit, RowSink& sink) = 0;
  /// Adds what is left when the last unit of a range was added.
  [[nodiscard]] virtual absl::Status EndRange(RowSink& sink) = 0;
};

/// options  must be right for the shape (CheckTableOptions).
std::unique_ptr<RowMaker> NewRowMaker(Shape shape, const TableOptions& options);

/// The name of what a table of this kind is: "long", "wide", "objects", "mappings".
std::string_view FormOf(Shape shape, const TableOptions& options);

}  // namespace kvstore::exports
