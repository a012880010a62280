#pragma once

#include <cstdint>
#include <string>

#include "shardmap/shard_map.h"

/// The state of channels (channel.h), as hosts report it.
namespace kvstore::shardops {

/// A place in a binary log.
struct Position {
  std::string file;
  uint64_t offset = 0;
  /// On MySQL, the set of all transactions that the source has committed up to there (gtid_executed); empty
  /// on MariaDB.
  std::string gtids;
  friend auto operator<=>(const Position&, const Position&) = default;
};

/// The state of a host's channel, as the host reports it.
struct ChannelState {
  Host source;
  std::string patterns;
  bool receives = false;  ///< The IO thread is connected to the source.
  bool applies = false;   ///< The SQL thread runs.
  /// Up to here the source's log was applied, or left out by the filter. The set of MySQL has all that the
  /// target has committed, whichever server it began on.
  Position applied;
  std::string error;  ///< The last error of either thread; empty if there was none.
};

}  // namespace kvstore::shardops
