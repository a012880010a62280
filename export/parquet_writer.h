#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "blobstore/descriptor.h"
#include "export/child_program.h"
#include "export/pipe/batch_builder.h"
#include "export/pipe/table.h"

namespace kvstore::exports {

/// The most bytes of one Parquet file.
inline constexpr size_t kMaxParquetBytes = size_t{256} << 20;

/// Makes one Parquet file, by kv-parquet: batches go to it through a socket, and the file's bytes come back
/// through a pipe. All calls end with the caller's CallScope. Externally synchronised; the program is killed
/// if this is destroyed before the file is finished.
class ParquetWriter {
 public:
  /// Starts a file.
  ///
  /// program  kv-parquet (FindParquetProgram).
  static absl::StatusOr<std::unique_ptr<ParquetWriter>> Start(const std::string& program,
                                                              const pipe::Schema& schema);

  /// Adds the rows that were collected as a row group, and clears them. Errors as Finish.
  absl::Status Write(pipe::BatchBuilder& rows);
  /// How many bytes of the file there are so far; the last ones may be on their way.
  size_t bytes() const { return file_.size(); }
  size_t rows() const { return rows_; }
  size_t row_groups() const { return row_groups_; }

  /// Ends the file, and returns its bytes. INVALID_ARGUMENT or UNAVAILABLE as ChildProgram::Wait; DATA_LOSS
  /// if what came back is no Parquet file; RESOURCE_EXHAUSTED if it has more than kMaxParquetBytes.
  absl::StatusOr<std::string> Finish();

 private:
  ParquetWriter(ChildProgram program, Descriptor to, Descriptor from)
      : program_(std::move(program)), to_(std::move(to)), from_(std::move(from)) {}

  /// Sends bytes, and takes what comes back meanwhile: otherwise both programs could wait for each other.
  absl::Status Send(std::string_view bytes);
  /// Waits until there is something to take or, if wanted, more can be sent; or for some milliseconds. An
  /// error if the call must end.
  absl::Status Await(bool to_send);
  /// Takes what has come back, without waiting.
  absl::Status Take();
  /// Why the program has ended before its input did.
  absl::Status EndedEarly();

  ChildProgram program_;
  Descriptor to_;
  Descriptor from_;
  std::string file_;
  bool at_end_ = false;  // the program has closed its output
  bool can_send_ = false;
  bool can_take_ = false;
  size_t rows_ = 0;
  size_t row_groups_ = 0;
};

}  // namespace kvstore::exports
