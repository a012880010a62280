#pragma once

#include <memory>

#include "backend_api/shard_operations.h"
#include "cli/command.h"
#include "cli/map_place.h"
#include "shardops/fleet_session.h"

/// How the commands of `kv shards` reach the fleet: through a server, or by a configuration. Whoever carries
/// a command out, its answer, its messages and its errors are the same.
namespace kvstore::cli {

/// Returns the fleet that a configuration describes.
shardops::FleetOptions FleetOptionsOf(const OpenOptions& store);

/// The fleet of the configuration, which names an operator's login, with the lines of its operations printed
/// (none under --json): for commands that no server carries out. Throws as WrongUsage without --config;
/// Failure.
std::unique_ptr<shardops::FleetSession> OpenConfiguredFleet(const Globals& globals);

/// Opens the server that was named, or the fleet of the configuration in this process, to carry out commands
/// on the hosts. Throws as WrongUsage if there is neither; Failure.
std::unique_ptr<ShardOperations> OpenFleet(const CLI::App& command, const Globals& globals);
/// The same for commands that need the store's ZooKeeper, or its MySQL servers, but no operator's login.
std::unique_ptr<ShardOperations> OpenStoreOperations(const CLI::App& command, const Globals& globals);
/// The same for commands on the maps, which may name ZooKeeper themselves. Without a configuration no host
/// can be asked.
std::unique_ptr<ShardOperations> OpenMapOperations(const CLI::App& command, MapPlace& place,
                                                   const Globals& globals);

/// Whether the lines of an operation are printed.
enum class Report : uint8_t {
  kLines,    ///< Each as it comes; none under --json.
  kNothing,  ///< None: they were printed before.
};

/// Carries out a command, and returns its answer. Prints its lines on standard output and its progress on
/// standard error. Throws Failure.
Json Operate(ShardOperations& operations, const Json& command, const Globals& globals,
             Report report = Report::kLines);

/// Prints an answer under --json.
void PrintAnswer(Json answer);

}  // namespace kvstore::cli
