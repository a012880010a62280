#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/status/statusor.h"
#include "shardops/promote.h"

/// What is kept of a host in ZooKeeper, for the day when it does not answer: ROOT/hosts/HOST.
namespace kvstore::shardops {

/// What is kept of a host at one moment.
struct Note {
  nlohmann::json json = nlohmann::json::object();
  std::optional<int32_t> version;  ///< Of its node; none: there is none.
};

/// UNAVAILABLE if it cannot be read. What does not parse is taken for nothing.
absl::StatusOr<Note> LookAtNote(Fleet& fleet, const Host& host);
/// The JSON alone; an empty object if it cannot be read.
nlohmann::json ReadNote(Fleet& fleet, const Host& host);

/// Keeps something in the place of what there is, but for an unfinished copy.
///
/// before  FAILED_PRECONDITION if it is not that any more: what was decided on may not hold. Null: whatever
///         it is.
absl::Status WriteNote(Fleet& fleet, const Host& host, const nlohmann::json& note,
                       const Note* before = nullptr);

/// From here on a host has no whole copy of its master's data: whoever promotes it would lose the rest. A
/// process that dies in the middle of a copy leaves it so. ABORTED if the operation is not held any more.
absl::Status BeginCopy(Fleet& fleet, const Held& held, const Host& host, const Host& master);
/// The copy that this operation has begun is whole. As above.
absl::Status EndCopy(Fleet& fleet, const Held& held, const Host& host);
/// FAILED_PRECONDITION if a copy to that host was begun and not ended, with what begins it again. UNAVAILABLE
/// if that cannot be told.
absl::Status CheckCopyEnded(Fleet& fleet, const Host& host);

}  // namespace kvstore::shardops
