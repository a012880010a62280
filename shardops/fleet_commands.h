#pragma once

#include <utility>

#include "backend_api/shard_operations.h"
#include "shardops/fleet_session.h"

namespace kvstore::shardops {

/// The commands of `kv shards`, carried out by this process. Opens sessions of its own for each, since
/// commands are rare. Thread-safe.
class FleetCommands : public ShardOperations {
 public:
  explicit FleetCommands(FleetOptions options) : options_(std::move(options)) {}

  absl::StatusOr<Json> Operate(const Json& command, const ShardEvents& events) override;

 private:
  const FleetOptions options_;
};

}  // namespace kvstore::shardops
