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
/// A chain follows the backup whose ID is its name: its first segment begins behind a change that the backup
/// has, and each other one behind the one before, which it names by its checksum. NUMBER has eight digits and
/// begins at 1.
namespace kvstore::backup {

inline constexpr std::string_view kLogPrefix = "log/";
/// The most bytes of writes in a segment, about.
inline constexpr size_t kSegmentBytes = size_t{8} << 20;

/// All changes up to the number `last` were written at this time.
struct LogMark {
  uint64_t at_ms = 0;
  uint64_t last = 0;
  friend bool operator==(const LogMark&, const LogMark&) = default;
};

struct LogSegment {
  std::string chain;
  uint64_t number = 0;   ///< In the chain, from 1 on.
  std::string previous;  ///< The SHA-256 of the bytes of the segment before; empty for the first one.
  uint64_t after = 0;    ///< The change behind which it begins.
  uint64_t last = 0;     ///< The last change that it has.
  /// By time. The first one was the last of the segment before that is not behind its last change; in the
  /// first segment, it says when the backup began. The last one may be behind `last`.
  std::vector<LogMark> marks;
  LogSchema schema;  ///< As it was behind the last write.
  /// The schema is already that of a later segment, which was read when this one was sent. Behind the last
  /// write that of an earlier segment held, or that of the backup. Readers of earlier versions ignore this.
  bool schema_is_later = false;
  std::vector<LoggedWrite> writes;
};

/// "log/CHAIN/00000001"
std::string SegmentBlob(std::string_view chain, uint64_t number);
/// Returns the chain and the number in such a name; an empty chain if it has another form.
std::pair<std::string_view, uint64_t> PartsOfSegment(std::string_view blob);

std::string EncodeSegment(const LogSegment& segment);
/// Decodes a segment, whose bytes anybody may have written. DATA_LOSS, with the name of the blob, if it is
/// damaged; FAILED_PRECONDITION if a newer version wrote it.
///
/// blob  its name, which says its chain and number.
absl::StatusOr<LogSegment> DecodeSegment(std::string_view bytes, std::string_view blob);

}  // namespace kvstore::backup
