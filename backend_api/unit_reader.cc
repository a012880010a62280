#include "backend_api/unit_reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvstore {

absl::Status SnapshotExpiredError(std::string_view why) {
  return absl::AbortedError(
      fmt::format("the snapshot has expired: {}; take another one, and begin to read again", why));
}

std::chrono::steady_clock::time_point SnapshotEnd(std::chrono::seconds max_age) {
  // The clock counts nanoseconds, of which seconds::max() would be too many.
  constexpr std::chrono::seconds kLongest = std::chrono::hours(24) * 36'525;
  return std::chrono::steady_clock::now() + std::clamp(max_age, std::chrono::seconds(0), kLongest);
}

absl::StatusOr<std::unique_ptr<UnitSnapshot>> UnitReader::Snapshot(std::chrono::seconds) {
  return absl::UnimplementedError("this reader of units takes no snapshots");
}

}  // namespace kvstore
