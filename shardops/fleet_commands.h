#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "backend_api/shard_operations.h"
#include "shardops/fleet_session.h"

namespace kvstore::shardops {

struct FleetCommand;  // fleet_command.h

/// Functions that carry out commands, by the names of the commands.
using CommandTable = std::map<std::string, absl::StatusOr<Json> (*)(FleetCommand&), std::less<>>;

/// The commands of `kv shards`, carried out by this process. Opens sessions of its own for each, since
/// commands are rare. Thread-safe.
class FleetCommands : public ShardOperations {
 public:
  /// more  Commands on the fleet that modules above this one have.
  explicit FleetCommands(FleetOptions options, const CommandTable& more = {});

  absl::StatusOr<Json> Operate(const Json& command, const ShardEvents& events) override;

 private:
  const FleetOptions options_;
  CommandTable commands_;
};

}  // namespace kvstore::shardops
