#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operate/pair_records.h"
#include "shardops/fleet_operator.h"
#include "shardops/host.h"
#include "shardops/maps.h"

/// Whether kv operate may promote the slave of a pair by itself.
namespace kvstore::operate {

/// Returns the pair that has a host. FAILED_PRECONDITION if it is in no shard map, or in more than one pair.
absl::StatusOr<shardops::Pair> FindPair(const shardops::Maps& maps, const Host& host);

/// Whether a server would take writes when it is started again, as far as it can tell: it takes them, and
/// nobody has changed that since its last start. If somebody has, its configuration is not known, and it is
/// believed, but for what SET PERSIST has stored on a MySQL server.
absl::StatusOr<bool> StartsWritable(shardops::HostAdmin& admin);

/// Returns a sentence about a host that StartsWritable, with what to do.
std::string WritableStart(shardops::Engine engine);

/// Switches a pair on. FAILED_PRECONDITION names what stands in the way: each problem of its hosts that
/// `kv shards status` shows, such as a master that acknowledges commits without its slave; and a host that
/// would take writes when it is started again, so that a dead master could come back beside its successor.
/// UNAVAILABLE if a host or ZooKeeper cannot be reached.
absl::Status SwitchOn(shardops::FleetOperator& fleet, PairRecords& records, const shardops::Pair& pair);

/// Switches a pair off, whatever state it is in. UNAVAILABLE if ZooKeeper cannot be reached.
absl::Status SwitchOff(shardops::FleetOperator& fleet, PairRecords& records, const shardops::Pair& pair);

}  // namespace kvstore::operate
