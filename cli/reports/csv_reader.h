#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kvstore::cli {

/// Reads records of comma-separated values (RFC 4180) from a file descriptor. Lines may end in LF or CRLF,
/// the last one in nothing; a byte order mark in front is skipped. No memory is allocated for single fields.
/// Externally synchronised.
class CsvReader {
 public:
  struct Field {
    std::string_view text;
    bool quoted = false;  ///< It stood between quotes, as an empty one may.
  };
  enum class Result {
    kRecord,  ///< fields() has it.
    kBlank,   ///< An empty line.
    kBad,     ///< A line whose quoting is wrong: problem() says how. The next call goes on after that line.
    kEnd,
  };

  /// max_record_bytes  a record that is longer is bad.
  explicit CsvReader(int file, size_t max_record_bytes = size_t{1} << 20)
      : file_(file), max_record_bytes_(max_record_bytes) {}

  /// Reads the next record. UNAVAILABLE if reading fails.
  absl::StatusOr<Result> Next();

  // These describe what the last call of Next has read.

  std::span<const Field> fields() const { return fields_; }
  /// Returns the bytes of the record as they stand in the file, without the end of its last line.
  std::string_view text() const { return text_; }
  /// Returns the number of the line in which the record begins, from 1.
  uint64_t line() const { return line_; }
  /// Returns how many bytes of the input lie before the record.
  uint64_t offset() const { return offset_; }
  /// Returns how many bytes of the input lie before the next record.
  uint64_t consumed() const { return base_ + at_; }
  const std::string& problem() const { return problem_; }

 private:
  /// The bytes that are read and not taken yet.
  std::string_view Rest() const { return std::string_view(buffer_).substr(at_); }
  /// Reads more; false at the end of the input. Views into the buffer are invalid then.
  absl::StatusOr<bool> Fill();
  /// Returns where in Rest() the next newline is; npos if there is none before the end of the input, or none
  /// in as many bytes as a record may have.
  absl::StatusOr<size_t> FindNewline();
  /// Returns the size of the record that Rest() begins with, whose newlines may stand between quotes; npos if
  /// its quotes do not end.
  absl::StatusOr<size_t> FindRecordEnd();
  /// Takes the first `size` bytes of Rest() as a record, and the newline after it.
  void Take(size_t size);
  void SplitPlain();
  /// Divides a record that has quotes; returns false, and sets the problem, if they are wrong.
  bool SplitQuoted();
  absl::StatusOr<Result> ReadQuoted(size_t first_line_size);
  absl::StatusOr<Result> SkipLongLine();

  const int file_;
  const size_t max_record_bytes_;
  std::string buffer_;
  size_t at_ = 0;      // in buffer_
  uint64_t base_ = 0;  // bytes of the input before buffer_
  bool end_ = false;
  uint64_t next_line_ = 1;
  std::vector<Field> fields_;
  std::string unquoted_;  // the fields that had doubled quotes
  std::string_view text_;
  std::string problem_;
  uint64_t line_ = 1;
  uint64_t offset_ = 0;
};

}  // namespace kvstore::cli
