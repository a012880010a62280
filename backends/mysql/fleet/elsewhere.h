#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "backends/mysql/fleet/fleet.h"

namespace kvstore::mysql {

/// Says what it means if a host that is not in a shard's pair has its database, without a table of a dataset.
enum class EmptyElsewhere : uint8_t {
  kRefused,  ///< The map may be wrong: shards would be made at the wrong host.
  kIgnored,  ///< Nothing: an operator knows that the map is right. No data can be lost.
};

/// Checks, before shards are made, that no other host has a database that an open shard's master lacks: then
/// the map is wrong there, or the master has lost its data. An empty shard made on that master would give the
/// IDs of its objects a second time.
///
/// others  hosts that may have shards, in addition to those of the maps. Those of them, and of the slaves,
///         that do not answer are left out.
///
/// FAILED_PRECONDITION  there is such a database.
/// UNAVAILABLE          a master does not answer.
absl::Status CheckNowhereElse(const Fleet& fleet, std::span<const Host> others, EmptyElsewhere empty);

}  // namespace kvstore::mysql
