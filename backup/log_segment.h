#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/write_log.h"

/// The segments of the log in a store of backups. docs/backup-format.md is for those who read them with other
/// programs; golden tests pin the form.
///
///   log/CHAIN/NUMBER   a segment: two lines of JSON, as a manifest has them, and the writes, packed by zstd
///
/// A chain continues the backup whose ID is its name. Its first segment begins right after the last change
/// that is certainly in the backup; each later one begins right after the end of the one before it, and holds
/// the checksum of that one. NUMBER has eight digits and begins at 1.
namespace kvstore::backup {

inline constexpr std::string_view kLogPrefix = "log/";
/// About the most bytes of writes that a segment has, before compression.
inline constexpr size_t kSegmentBytes = size_t{8} << 20;

/// All changes up to the number `last` had been written by this time (ms since 1970).
struct LogMark {
  uint64_t at_ms = 0;
  uint64_t last = 0;
  friend bool operator==(const LogMark&, const LogMark&) = default;
};

struct LogSegment {
  std::string chain;
  uint64_t number = 0;   ///< In the chain, from 1 on.
  std::string previous;  ///< The SHA-256 of the bytes of the segment before; empty for the first one.
  uint64_t after = 0;    ///< The number of the last change before this segment.
  uint64_t last = 0;     ///< The last change that it has.
  /// Ascending by time. The first mark repeats the newest one of the previous segment that is not after the
  /// last change of that segment; in the first segment of a chain, it has the time at which the backup began.
  /// The last mark may name a change later than `last`.
  std::vector<LogMark> marks;
  LogSchema schema;  ///< As it was after the last write, unless schema_is_later.
  /// True if `schema` was read late and is already that of a later segment. The schema in force after the
  /// last write is then that of the nearest earlier segment without this flag, or of the backup. Earlier
  /// versions of KVStore ignore the flag.
  bool schema_is_later = false;
  std::vector<LoggedWrite> writes;
};

/// "log/CHAIN/00000001"
std::string SegmentBlob(std::string_view chain, uint64_t number);
/// Returns the chain and the number in such a name; an empty chain if it has another form.
std::pair<std::string_view, uint64_t> PartsOfSegment(std::string_view blob);

/// Encodes a segment as the bytes of its blob, which SegmentBlob names.
std::string EncodeSegment(const LogSegment& segment);
/// Decodes a segment, whose bytes anybody may have written. DATA_LOSS, with the name of the blob, if it is
/// damaged; FAILED_PRECONDITION if a newer version wrote it.
///
/// blob  its name, which says its chain and number.
absl::StatusOr<LogSegment> DecodeSegment(std::string_view bytes, std::string_view blob);

}  // namespace kvstore::backup
