#pragma once

#include <cstdint>
#include <string>

#include "cli/rejected_lines.h"
#include "cli/reports/batch_writer.h"
#include "cli/reports/load_target.h"
#include "reports/reports.h"

namespace kvstore::cli {

enum class FileFormat : uint8_t { kCsv, kJsonLines, kParquet };

/// Finds out the format of a file: the one that is named ("csv", "jsonl", "parquet"), or else the one that
/// the end of its name says. INVALID_ARGUMENT says which there are, and what to do with a file of another.
absl::StatusOr<FileFormat> FormatOf(const std::string& path, const std::string& named);

/// A file, or standard input ("-"), that is to be loaded.
struct FileToLoad {
  std::string path;
  FileFormat format = FileFormat::kCsv;
  /// The prefix of the batches' IDs that was asked for; empty: none was.
  std::string batch;
};

/// Loads one file. Batches have IDs if a prefix was asked for, or if values are added: then the prefix stands
/// for the file's path, size and time of its last change. Values that replace others need no IDs, because a
/// repetition changes no answer; and without IDs the same file can be loaded again after its points were
/// deleted or overwritten.
///
/// Parquet is read as the lines of JSON that kv-parquet makes of it: FAILED_PRECONDITION, with what to
/// install, if that is not there.
///
/// The writer may still be at work when this returns. Throws Failure.
LoadCounts LoadFile(reports::Reports& reports, const LoadOptions& options, const FileToLoad& file,
                    BatchWriter& writer, RejectedLines& rejected_lines);

}  // namespace kvstore::cli
