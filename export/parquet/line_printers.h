#pragma once

#include <arrow/api.h>

#include <memory>
#include <string>

#include "export/parquet/line_options.h"
#include "export/parquet/output_pipe.h"

namespace kvstore::columnar {

/// Prints the rows of batches as lines. Externally synchronised.
class LinePrinter {
 public:
  virtual ~LinePrinter() = default;
  virtual arrow::Status Print(const arrow::RecordBatch& batch) = 0;
  /// Prints what is left, after the last batch.
  virtual arrow::Status Finish() { return arrow::Status::OK(); }
};

/// Returns a printer of lines of a form. Invalid if the file lacks a column that these need.
///
/// note    what the file says of its form; empty if it says nothing.
/// schema  of the batches.
/// output  must outlive the printer.
arrow::Result<std::unique_ptr<LinePrinter>> NewLinePrinter(const LineOptions& options,
                                                           const std::string& note,
                                                           const arrow::Schema& schema, OutputPipe& output);

}  // namespace kvstore::columnar
