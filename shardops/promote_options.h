#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "shardops/maps.h"

/// The options and the result of a promotion (promote.h).
namespace kvstore::shardops {

struct PromoteOptions {
  /// The master is gone, and its slave takes over with what it has. Refused while the master answers.
  bool emergency = false;
  /// In an emergency: how many acknowledged transactions may be lost, also if it is not known how many are;
  /// up to half of the shards' databases may then be missing at the slave, too. If not set, a loss, or not
  /// knowing whether there is one, is refused.
  std::optional<uint64_t> accept_loss;
  /// How long the slave may take to apply what it lacks. Clients wait meanwhile if the promotion is planned;
  /// in an emergency they have no master anyway.
  std::chrono::milliseconds catch_up{5'000};
  /// In an emergency: refused while the slave receives from the master, which lives then.
  bool only_if_lost = false;
  /// Only completes what the maps say: refused unless they name the host the master, and if it is read-only
  /// because somebody has fenced it.
  bool only_complete = false;
  /// For a host that the maps name the master: UNAVAILABLE unless the other host answers, which may have
  /// acknowledged transactions that this one has lost.
  bool needs_other = false;
  /// Ends the connections of those who have locked a host, as an emergency does, such as a process that
  /// hangs; but does not begin while the ledger has an operation of somebody else on these hosts.
  bool take_hosts = false;
  /// Whether a host that the maps name the master is made to take writes; if not, it is refused unless it
  /// does.
  bool open = true;
  /// Checks all, reports what would be done, and changes nothing.
  bool dry_run = false;
};

struct Promotion {
  Pair before;
  Pair after;
  /// How long clients could not write; of planned promotions only.
  uint64_t write_pause_ms = 0;
  /// Whether the pair's other host follows the master, and replicates. False if it cannot follow.
  bool follows = false;
};

}  // namespace kvstore::shardops
