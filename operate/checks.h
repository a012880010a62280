#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "operate/alarms.h"
#include "shardops/fleet_session.h"

namespace kvstore::operate {

/// Something that the leader looks at every now and then, besides masters and replication.
struct Check {
  std::string source;  ///< Names it in alarms and metrics: "disk".
  std::chrono::milliseconds every;
  /// Returns what is wrong now. An error is an alarm, too. Is called by one thread at a time, and ends soon
  /// after `active` has become false.
  std::function<absl::StatusOr<std::vector<Finding>>(const std::atomic<bool>& active)> find;
};

/// Returns checks that find what a fleet's maps and hosts run out of, at four fifths of it: the space of a
/// map in ZooKeeper, the local IDs of a table, the disk of a host (which MariaDB tells only with its plugin
/// `disks`). One more finds hosts that would take writes when they are started again (StartsWritable).
std::vector<Check> FleetChecks(const shardops::FleetOptions& fleet);

}  // namespace kvstore::operate
