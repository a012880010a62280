#pragma once

#include <arrow/status.h>

#include "export/parquet/line_options.h"

namespace kvstore::columnar {

/// Reads a Parquet file, and prints its rows as lines of JSON, which `kv import` and `kv report load` take.
///
/// A file of rows is long if its notes say so (kvstore.form), or else if it has columns `column` and `value`:
/// then each of its rows is a cell. Cells of one row that follow each other are one line, up to about 1 MiB.
/// Otherwise it is wide: each column but `row` is a column of the row.
///
/// in   of a file, not of a pipe.
/// out  where lines go.
///
/// Lines of kPoints are a part of the IDs of batches (cli/reports/load_target.h): what makes them from a file
/// must stay the same.
arrow::Status PrintLines(int in, int out, const LineOptions& options);

}  // namespace kvstore::columnar
