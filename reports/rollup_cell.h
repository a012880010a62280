#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/rows.h"

/// The stored form of roll-ups. The row of roll-ups of a row of points (EncodeRollupKey) has the columns
///
///   made   which roll-ups were made, and of which version of the row of points
///   ID/c   of roll-up ID, how many points each series has in each step; a step without points is not there
///   ID/s   their sums: a chunk of the integers, and up to Summary::kMaxReals of real numbers, which together
///          are the exact sum of the values that are real
///   ID/n   the least, ID/x the greatest
///   ID/l   the last: a chunk of the values, and one of their times, in ms from the start of the step
///   ID/u   of a metric of another kind, in place of all of these, the unions of the sketches
///
/// so that a query reads what its function needs. All of them are written by one put. Golden tests pin their
/// forms, which never change without a new version:
///
///   version u8 = 1 | CRC-32C u32, big endian, of the rest | the version of the row of points: timestamp u64,
///   big endian, and 18 bytes of the chunk's name | content
///
/// The content of `made` is how many varint, then of each the ID varint and u8, whether it was kept. That of
/// the others is how many chunks varint, then of each its size varint and the chunk (chunk.h), whose series
/// have the ID 0 for the keys that the roll-up leaves out, and whose times are the starts of steps.
namespace kvstore::reports {

enum class RollupPart : char {
  kCount = 'c',
  kSum = 's',
  kMin = 'n',
  kMax = 'x',
  kLast = 'l',
  kSketch = 'u',
};
inline constexpr RollupPart kRollupParts[] = {RollupPart::kCount, RollupPart::kSum,  RollupPart::kMin,
                                              RollupPart::kMax,   RollupPart::kLast, RollupPart::kSketch};

inline constexpr char kMadeColumn[] = "made";
std::string RollupColumn(uint32_t id, RollupPart part);

/// A part of a roll-up of one row.
struct RollupCell {
  RowVersion made_of;
  std::vector<std::string_view> chunks;  ///< They point into the bytes that were decoded.
};
std::string EncodeRollupCell(const RowVersion& made_of, std::span<const std::string> chunks);
/// DATA_LOSS for bytes that no EncodeRollupCell gave.
absl::StatusOr<RollupCell> DecodeRollupCell(std::string_view bytes);

/// Which roll-ups of a row were made.
struct MadeRollups {
  RowVersion made_of;
  /// ID -> whether it was kept. One that takes as many bytes to read as the points themselves, or whose sums
  /// cannot be stored exactly, is not: the points are read.
  std::map<uint32_t, bool> rollups;
  friend bool operator==(const MadeRollups&, const MadeRollups&) = default;
};
std::string EncodeMade(const MadeRollups& made);
/// DATA_LOSS for bytes that no EncodeMade gave.
absl::StatusOr<MadeRollups> DecodeMade(std::string_view bytes);

}  // namespace kvstore::reports
