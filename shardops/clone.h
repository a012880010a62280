#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "shardops/fleet_operator.h"
#include "shardops/host.h"

/// Copies of whole MySQL servers, by the server's own plugin `clone`: the new server gets the files of the
/// other one, which goes on serving.
namespace kvstore::shardops {

/// Checks whether a host can be made a clone of another one. FAILED_PRECONDITION, with what to do, if one of
/// them lacks the plugin, or their versions differ. Changes nothing.
absl::Status CheckClone(HostAdmin& source, HostAdmin& target);

/// Replaces all that a host has, its users too, by a copy of what another host has. The host logs in to that
/// one with the login of replication, which needs the right BACKUP_ADMIN there. It must follow nobody.
///
/// The host restarts at the end. A host that no service manager starts again must be started by its operator;
/// this waits for it, and reports that.
///
/// target    The host's connection, which is claimed. It ends, and is replaced by another one that is.
/// progress  Is called with the bytes that were copied; the copy ends if it returns false. May be null.
///
/// CANCELLED if `progress` returned false; UNAVAILABLE if the host does not come back within 10 minutes; the
/// server's error if it cannot copy. The host may have lost what it had, unless it lacks a right only.
absl::Status CloneHost(FleetOperator& fleet, const Host& source, std::unique_ptr<HostAdmin>& target,
                       const std::function<bool(uint64_t)>& progress);

}  // namespace kvstore::shardops
