#include "backend_api/unit_reader.h"

#include <fmt/format.h>

namespace kvstore {

absl::Status SnapshotExpiredError(std::string_view why) {
  return absl::AbortedError(
      fmt::format("the snapshot has expired: {}; take another one, and begin to read again", why));
}

absl::StatusOr<std::unique_ptr<UnitSnapshot>> UnitReader::Snapshot(std::chrono::seconds) {
  return absl::UnimplementedError("this reader of units takes no snapshots");
}

}  // namespace kvstore
