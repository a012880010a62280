#include "cli/served_shards.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "cli/shard_operator.h"
#include "operate/commands.h"
#include "shardops/fleet_commands.h"

namespace kvstore::cli {
namespace {

/// Refuses all commands.
class RefusedOperations : public ShardOperations {
 public:
  explicit RefusedOperations(absl::Status why) : why_(std::move(why)) {}

  absl::StatusOr<Json> Operate(const Json&, const ShardEvents&) override { return why_; }

 private:
  const absl::Status why_;
};

}  // namespace

std::unique_ptr<ShardOperations> ServeShards(const OpenOptions& store) {
  shardops::FleetOptions fleet = FleetOptionsOf(store);
  if (fleet.zookeeper.servers.empty()) return nullptr;
  if (fleet.access.ok())
    return std::make_unique<shardops::FleetCommands>(std::move(fleet), operate::Commands());
  return std::make_unique<RefusedOperations>(absl::FailedPreconditionError(fmt::format(
      "this server does not operate its fleet, since it has no logins for that: {}. Set mysql.operator and "
      "mysql.replication in the configuration of the server and start it again, or run the command with "
      "--config and a configuration that has them",
      std::string(fleet.access.status().message()))));
}

}  // namespace kvstore::cli
