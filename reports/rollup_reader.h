#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/aggregate.h"
#include "reports/chunk.h"
#include "reports/rollup_cell.h"
#include "reports/series_reader.h"

namespace kvstore::reports {

/// The steps of one series of a roll-up.
struct SeriesSummary {
  std::vector<int64_t> times;  ///< Their starts, ms, ascending strictly.
  /// For a metric of kind value, a summary of each step from the parts that were read.
  std::vector<Summary> values;
  /// For the other kinds, the encoded union of the sketches of each step.
  std::vector<std::string> sketches;
};

/// Walks the series of some parts of a roll-up of one row, in the order of their segments. Externally
/// synchronised; neither copied nor moved.
class RollupReader {
 public:
  using Parts = std::map<RollupPart, RollupCell>;

  /// parts    the counts and any others, or of a metric of another kind the sketches alone. The bytes that
  ///          they point into must outlive the reader.
  /// step_ms  of the roll-up.
  /// keys     how many segment keys the report has by now.
  ///
  /// DATA_LOSS for what nobody has made, here and below.
  static absl::StatusOr<std::unique_ptr<RollupReader>> Make(const Parts& parts, MetricKind kind,
                                                            uint64_t step_ms, uint32_t keys);
  RollupReader(const RollupReader&) = delete;
  RollupReader& operator=(const RollupReader&) = delete;

  /// Returns the directory of the chunk that has all series and all steps.
  const ChunkDirectory& directory() const { return columns_.front()->chunk.directory(); }
  /// Goes to the next series, whether the one before was read or not. False at the end.
  absl::StatusOr<bool> Next();
  std::span<const uint32_t> segments() const { return segments_; }
  /// Reads the series that Next has found, once.
  absl::Status Read(SeriesSummary& series);

 private:
  /// One of the chunks, which has one number of each step.
  struct Column {
    RollupPart part;
    size_t index;  // among the chunks of its part
    Chunk chunk;
    std::unique_ptr<SeriesReader> reader;
    bool at_series = false;  // the reader stands on a series that was not passed yet

    /// Whether it has some steps only: those whose sums take so many real numbers.
    bool sparse() const { return part == RollupPart::kSum && index > 0; }
  };

  RollupReader(MetricKind kind, uint64_t step_ms) : kind_(kind), step_ms_(static_cast<int64_t>(step_ms)) {}
  absl::Status AddColumns(RollupPart part, const RollupCell& cell, uint32_t keys);
  bool TakeColumn(const Column& column, const SeriesPoints& points, SeriesSummary& series) const;
  bool TakeNumber(const Column& column, const Number& number, int64_t time, Summary& summary) const;

  const MetricKind kind_;
  const int64_t step_ms_;
  std::vector<std::unique_ptr<Column>> columns_;  // the first one has all series and steps
  std::vector<uint32_t> segments_;
  SeriesPoints points_;
  bool begun_ = false;
};

}  // namespace kvstore::reports
