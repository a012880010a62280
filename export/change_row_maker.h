#pragma once

#include <memory>

#include "absl/status/status.h"
#include "export/row_maker.h"

namespace kvstore::exports {

/// INVALID_ARGUMENT if there can be no table of changes with these options, which are right for the shape
/// (CheckTableOptions): wide tables of rows, and a field that is named as the column `deleted`.
absl::Status CheckChangeOptions(const TableOptions& options, Shape shape);

/// Makes rows of a table of changes (changes_source.h): the columns of NewRowMaker, and `deleted` after them.
/// A unit that is gone is a row with its key alone, in which `deleted` is true; a row of the dataset that was
/// deleted as a whole is one without a `column`. For datasets of rows the table is long.
///
/// options  must be right for that (CheckChangeOptions).
std::unique_ptr<RowMaker> NewChangeRowMaker(Shape shape, const TableOptions& options);

}  // namespace kvstore::exports
