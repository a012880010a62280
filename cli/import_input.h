#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/command.h"
#include "cli/line_reader.h"
#include "kvstore_api/dataset.h"

namespace kvstore::cli {

/// Where kv import gets its lines from. Externally synchronised.
class ImportInput {
 public:
  virtual ~ImportInput() = default;

  /// Reads the next line, as LineReader::Next.
  virtual absl::StatusOr<LineReader::Result> Next(std::string& line) = 0;
  /// How many bytes of the input lie before the next line; of Parquet, about so many.
  virtual uint64_t offset() const = 0;
  /// Bytes of all input; 0 if that is not known.
  virtual uint64_t size() const = 0;
  /// Goes to this byte, where a line begins. Throws Failure.
  virtual void Skip(uint64_t bytes) = 0;
};

/// A longer line is refused.
inline constexpr size_t kMaxImportLineBytes = size_t{64} << 20;

/// A file of JSON lines; "-" stands for standard input. Throws Failure.
std::unique_ptr<ImportInput> OpenJsonLines(const std::string& path);

/// Parquet, as the lines that kv-parquet makes of it: an export with its manifest (DIR/ID,
/// s3://BUCKET/PREFIX/ID), whose files are compared with their checksums, or one file. It cannot be skipped.
///
/// compares  Cells of a wide table, which has no timestamps, get none, so that they are compared with the
///           newest ones. Otherwise those of an export get its time, so that an import that is repeated
///           writes the same cells.
///
/// Throws Failure: INVALID_ARGUMENT if it is not of datasets of this shape.
std::unique_ptr<ImportInput> OpenParquet(const std::string& place, Shape shape, bool compares,
                                         const Globals& globals);

}  // namespace kvstore::cli
