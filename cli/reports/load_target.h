#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "cli/rejected_lines.h"
#include "cli/reports/batch_writer.h"
#include "reports/reports.h"

namespace kvstore::cli {

/// The options that all files of a load share.
struct LoadOptions {
  std::string report;
  absl::TimeZone zone = absl::UTCTimeZone();  ///< The zone of dates without a time.
  size_t batch_points = 100'000;
  bool add = false;
  std::vector<std::string> ignored;  ///< Columns that are not read.
};

/// The numbers of lines and points of a file. Every line is one of loaded, rejected and blank.
struct LoadCounts {
  uint64_t lines = 0;  ///< Records of CSV, without the heading.
  uint64_t points = 0;
  uint64_t rejected = 0;
  uint64_t blank = 0;
};

/// The greatest length of a batch ID's prefix, in bytes.
inline constexpr size_t kMaxBatchPrefixBytes = 200;

/// Collects the points of one file into batches, and has these written. Batches end between records, where
/// the next one has no room, so that the same file is always cut at the same places. Externally synchronised.
class LoadTarget {
 public:
  /// file    for messages.
  /// prefix  of the batches' IDs, after which come the batch's place and a checksum of its text; empty:
  ///         batches have no IDs.
  LoadTarget(const LoadOptions& options, std::string file, std::string prefix, BatchWriter& writer,
             RejectedLines& rejected_lines)
      : options_(options),
        file_(std::move(file)),
        prefix_(std::move(prefix)),
        writer_(writer),
        rejected_lines_(rejected_lines) {}

  /// Points are added of these metrics from now on. Points that were collected before are written.
  ///
  /// layout  how records are read, as far as it depends on more than their text: the same bytes under another
  ///         layout are another batch.
  ///
  /// Throws Failure if a batch could not be written, as the functions below do.
  void Use(const reports::ReportInfo& info, std::string_view layout);
  /// Returns the batch that the points of the next record are added to; only after Use.
  ///
  /// points  how many points the record has. A batch has no more than LoadOptions::batch_points, unless one
  ///         record has.
  reports::Batch& BatchFor(size_t points);

  /// Counts a record whose points were added, or that has none.
  ///
  /// line    the number of its first line.
  /// offset  how many bytes of the file lie before it.
  void Done(uint64_t line, uint64_t offset, std::string_view text);
  /// Counts a record that has a mistake, and keeps it with the reason. Arguments as of Done.
  void Reject(uint64_t line, uint64_t offset, std::string_view text, const std::string& why);
  /// Counts lines that have nothing.
  void Blank(uint64_t lines) {
    counts_.lines += lines;
    counts_.blank += lines;
  }

  /// Has the last batch written; the writer may still be at work on it.
  void Finish() { Send(); }
  const LoadCounts& counts() const { return counts_; }

 private:
  void Send();

  const LoadOptions& options_;
  const std::string file_;
  const std::string prefix_;
  BatchWriter& writer_;
  RejectedLines& rejected_lines_;
  LoadCounts counts_;
  std::optional<reports::Batch> batch_;
  uint32_t layout_ = 0;    // a checksum
  uint32_t checksum_ = 0;  // of the records of this batch
  bool begun_ = false;     // whether the batch has a record
  uint64_t first_line_ = 0;
  uint64_t first_offset_ = 0;
  uint64_t bytes_ = 0;  // of the records of this batch
};

}  // namespace kvstore::cli
