#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "blobstore/descriptor.h"
#include "export/child_program.h"

namespace kvstore::exports {

/// The rows of a Parquet file as lines of JSON, by kv-parquet. Externally synchronised.
///
///   auto lines = ParquetLines::Open(file, {"rows"});
///   ...                                // read (*lines)->file() to its end
///   auto status = (*lines)->Finish();  // only now it is certain that nothing is missing
class ParquetLines {
 public:
  /// Starts to read.
  ///
  /// file       a descriptor of a file; one of a pipe does not do.
  /// arguments  those of `kv-parquet lines`: the form of lines, and options.
  ///
  /// FAILED_PRECONDITION if there is no kv-parquet (FindParquetProgram).
  static absl::StatusOr<std::unique_ptr<ParquetLines>> Open(int file,
                                                            const std::vector<std::string>& arguments);

  /// The descriptor from which the lines are read.
  int file() const { return from_.get(); }
  /// Says, when they were read to their end, why the file could not be read to its end: INVALID_ARGUMENT if
  /// it is damaged, no Parquet file, or has not the columns that the lines need.
  absl::Status Finish() { return program_.Wait(); }

 private:
  ParquetLines(ChildProgram program, Descriptor from)
      : program_(std::move(program)), from_(std::move(from)) {}

  ChildProgram program_;
  Descriptor from_;
};

}  // namespace kvstore::exports
