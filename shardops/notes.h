#pragma once

#include <nlohmann/json_fwd.hpp>

#include "absl/status/status.h"
#include "shardops/promote.h"

/// What is kept of a host in ZooKeeper, for the day when it does not answer: ROOT/hosts/HOST.
namespace kvstore::shardops {

/// Keeps something in the place of what there is, but for an unfinished copy.
absl::Status WriteNote(Fleet& fleet, const Host& host, const nlohmann::json& note);
/// What is kept; an empty object: nothing, or it cannot be read.
nlohmann::json ReadNote(Fleet& fleet, const Host& host);

/// From here on a host has no whole copy of its master's data: whoever promotes it would lose the rest. A
/// process that dies in the middle of a copy leaves it so.
absl::Status BeginCopy(Fleet& fleet, const Host& host, const Host& master);
/// The copy is whole.
absl::Status EndCopy(Fleet& fleet, const Host& host);
/// FAILED_PRECONDITION if a copy to that host was begun and not ended, with what begins it again. UNAVAILABLE
/// if that cannot be told.
absl::Status CheckCopyEnded(Fleet& fleet, const Host& host);

}  // namespace kvstore::shardops
