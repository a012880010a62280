#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/rows.h"
#include "reports/series_reader.h"

namespace kvstore::reports {

/// Series between two looks at the caller's deadline.
inline constexpr uint32_t kSeriesOfLook = 1'024;

/// How many bytes the chunks of a row may have together when they are decompressed. A few bytes can become
/// many: whoever may write to the dataset could fill the memory of the server otherwise.
inline constexpr uint64_t kMaxMergedBytes = uint64_t{512} << 20;

/// Whether anything in a chunk is of interest.
using WantChunk = std::function<bool(const ChunkDirectory&)>;

/// The series of a row, each once, as its chunks together say: newer points replace older ones or are added
/// to them, and deletes remove what is older than they are. Externally synchronised.
class RowMerge {
 public:
  /// RESOURCE_EXHAUSTED beyond kMaxMergedBytes; the error of `memory`, if that gives one.
  ///
  /// live    the row's chunks, oldest first; must outlive this.
  /// keys    how many segment keys the report has; segments() has more if one was added meanwhile.
  /// want    may be null: all. The points of other chunks are passed over, their deletes are not; so it may
  ///         only refuse whole series, or times in which nothing is read.
  /// memory  called once, with the bytes that the chunks will have when they are decompressed; may be null.
  static absl::StatusOr<std::unique_ptr<RowMerge>> Make(const std::vector<LiveChunk>& live, uint32_t keys,
                                                        const WantChunk& want,
                                                        const TakeBytes& memory = nullptr);

  /// Goes to the next series. False at the end.
  absl::StatusOr<bool> Next();
  /// The IDs of the series that Next has found, until the next call of Next.
  std::span<const uint32_t> segments() const { return found_.front()->reader->segments(); }
  /// The reader of the only chunk that has the series which Next has found, if no delete may touch it: then
  /// its points are those that Read would give, and may be read from there instead. Null for others.
  SeriesReader* only_reader() const {
    return found_.size() == 1 && !has_deletes_ ? found_.front()->reader.get() : nullptr;
  }
  /// The points of the series that Next has found, once; none if all were deleted. Points that are still
  /// marked as to be added have nothing older in this row to be added to.
  ///
  /// FAILED_PRECONDITION if integers that are added pass 64 bits.
  absl::Status Read(SeriesPoints& points);

 private:
  struct Source {
    const LiveChunk* live;
    std::unique_ptr<SeriesReader> reader;  // null: nothing of this chunk is read
    bool at_series = false;                // the reader stands on a series, which was not passed yet
  };

  RowMerge() = default;

  std::vector<Source> sources_;  // oldest first
  std::vector<Source*> found_;   // those that have the series which Next has found, oldest first
  bool has_deletes_ = false;
};

/// `newer` over `older`: both are points of one series, and what is left is in `older`.
absl::Status MergePoints(SeriesPoints& older, const SeriesPoints& newer, MetricKind kind);
/// Removes the points in a span of time.
void ErasePoints(SeriesPoints& points, const TimeSpan& span);
/// The sum of two values of a metric; FAILED_PRECONDITION if integers pass 64 bits.
absl::StatusOr<Number> AddNumbers(const Number& a, const Number& b);
/// The union of two encoded sketches of a metric.
absl::StatusOr<std::string> AddSketches(MetricKind kind, const std::string& a, const std::string& b);

}  // namespace kvstore::reports
