#pragma once

#include <span>

#include "absl/status/status.h"
#include "backends/mysql/fleet.h"

namespace kvstore::mysql {

/// FAILED_PRECONDITION if the database of an open shard is missing at its master, and another host has it:
/// the map is wrong there, or the master has lost what it had. An empty shard made there would have its
/// objects' IDs given a second time.
///
/// others  hosts that may have shards, beside those of the maps; who of them and of the slaves does not
/// answer
///         is left out. UNAVAILABLE if a master does not.
absl::Status CheckNowhereElse(const Fleet& fleet, std::span<const Host> others);

}  // namespace kvstore::mysql
