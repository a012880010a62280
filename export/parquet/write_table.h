#pragma once

#include <arrow/status.h>

namespace kvstore::columnar {

/// Reads a table (export/pipe/table.h) from one file descriptor, and writes it as a Parquet file to another:
/// a row group for each batch. Whatever is read, the file has its footer only if the table was whole.
///
/// The file has what all readers take: data pages of version 1; PLAIN and dictionaries, no DELTA, which Spark
/// before 3.3 and others refuse; zstd; timestamps in ms, UTC. Columns of bytes have no bounds, because those
/// that are cut off after 0xFF have misled readers.
arrow::Status WriteTable(int in, int out);

}  // namespace kvstore::columnar
