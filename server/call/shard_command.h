#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "json/json.h"
#include "server/call/call.h"

/// Commands of operators on the fleet (ShardOperations), by whatever door they come.
namespace kvstore::server {

/// Checks, beyond the right, whether the caller may operate shards now, and counts the operation in as long
/// as what is returned is kept. UNIMPLEMENTED if the server has no fleet, PERMISSION_DENIED unless it knows
/// who calls, RESOURCE_EXHAUSTED if there are Core::kMaxShardOperations.
absl::StatusOr<std::shared_ptr<void>> AdmitShardOperation(Core& core, const Principal* principal);

/// Returns what the log says of a command: its name and its options.
std::string DescribeShardCommand(const Json& command);

/// Returns in whose name a command is recorded: by what the server knows of its caller, and not by what the
/// caller says.
///
/// peer  As CallTransport::Peer.
std::string WhoAsks(const Principal& principal, std::string_view peer);

}  // namespace kvstore::server
