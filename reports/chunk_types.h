#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/number.h"
#include "reports/report_types.h"

/// The facts about a chunk that need none of its points: its name, its place among others, its directory.
namespace kvstore::reports {

/// A chunk's column in its row: 16 bytes that are unique and grow with time, and the number of the part (u16)
/// of what was written together.
using ChunkName = std::string;
inline constexpr size_t kChunkNameBytes = 18;

/// Which of two chunks of a row is the newer one: the one that the store took later. The store's timestamps
/// of a row never go back; parts of one put have the same, and no point in common.
struct ChunkOrder {
  uint64_t timestamp = 0;
  ChunkName name;
  friend auto operator<=>(const ChunkOrder&, const ChunkOrder&) = default;
};

/// The chunks from `oldest` to `newest`, both inclusive.
struct ChunkStretch {
  ChunkOrder oldest;
  ChunkOrder newest;
  friend bool operator==(const ChunkStretch&, const ChunkStretch&) = default;
};

/// Times from `from` (inclusive) to `to` (exclusive), in ms.
struct TimeSpan {
  int64_t from = 0;
  int64_t to = 0;
  friend bool operator==(const TimeSpan&, const TimeSpan&) = default;
};

/// The facts that a chunk records beside its points.
struct ChunkNotes {
  /// Points of older chunks in these spans are deleted.
  std::vector<TimeSpan> deletes;
  /// The chunks that a compacted chunk stands for: readers ignore the others of this stretch wherever they
  /// are still there. The compacted chunk has the place of the newest of them.
  std::optional<ChunkStretch> merged;
  /// The chunks of repeatable batches whose points this one has: readers ignore them also where they appear
  /// again, with a newer place in the row.
  std::vector<ChunkName> covers;
  /// The batch has an ID, so that the chunk may be written again under the same name after it was removed.
  bool repeatable = false;
  friend bool operator==(const ChunkNotes&, const ChunkNotes&) = default;
};

inline constexpr size_t kMaxChunkPoints = size_t{1} << 20;
inline constexpr size_t kMaxChunkBodyBytes = size_t{64} << 20;

struct ChunkDirectory {
  MetricKind kind = MetricKind::kValue;
  enum class Writes : uint8_t { kReplace = 0, kAdd = 1, kBoth = 2 };
  Writes writes = Writes::kReplace;
  uint64_t series = 0;
  uint64_t points = 0;
  int64_t min_time = 0;  ///< These only if there are points.
  int64_t max_time = 0;
  uint64_t time_unit = 1;  ///< ms; all times are multiples of it away from the first.
  Number min_value;        ///< The least value, for kind value.
  Number max_value;
  /// Whether no point has a real number, for kind value: then the order of points does not change their sum.
  bool all_integers = false;
  /// For each segment key the IDs of the values that occur, ascending.
  std::vector<std::vector<uint32_t>> segment_values;
  uint64_t body_bytes = 0;  ///< Before compression.
  ChunkNotes notes;
};

}  // namespace kvstore::reports
