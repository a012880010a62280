#pragma once

#include <nlohmann/json_fwd.hpp>

#include "absl/status/status.h"
#include "shardops/promote.h"

/// What is kept of a host in ZooKeeper, for the day when it does not answer: ROOT/hosts/HOST.
namespace kvstore::shardops {

/// Keeps something in the place of what there is.
absl::Status WriteNote(Fleet& fleet, const Host& host, const nlohmann::json& note);
/// What is kept; an empty object: nothing, or it cannot be read.
nlohmann::json ReadNote(Fleet& fleet, const Host& host);

}  // namespace kvstore::shardops
