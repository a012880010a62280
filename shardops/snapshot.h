#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "shardops/channel.h"
#include "shardops/host.h"

namespace kvstore::shardops {

/// Begins a transaction in which the connection reads what there is now, whatever is written later.
absl::Status BeginSnapshot(HostAdmin& host);

/// Does the same on a master, and returns the position in its binary log that the snapshot has.
///
/// MySQL does not tell that of a snapshot, so commits are blocked there while it begins. Such a snapshot also
/// has all that the host has sent to others by then. UNAVAILABLE on MySQL as of BlockedCommits::Block.
absl::StatusOr<Position> BeginSnapshotAtPosition(HostAdmin& host, const Access& access);

}  // namespace kvstore::shardops
