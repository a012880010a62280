#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "backend_api/shard_operations.h"
#include "json/json_fields.h"
#include "shardops/fleet_session.h"
#include "shardops/maps.h"
#include "shardops/move_record.h"

/// How FleetCommands carries out one command: for its own sources, and for those of a CommandTable.
namespace kvstore::shardops {

/// A command that is being carried out: its options, and what it needs.
struct FleetCommand {
  const FleetOptions& options;
  const ShardEvents& events;
  JsonFields fields;
  std::string who;

  // These record a mistake, which OpenFleet and OpenMaps return, if the option is wrong.

  /// The options `first` and `last`, and, if the command has it, `mod`.
  MoveRange Range(bool has_mod);
  /// A host, which must be given.
  Host RequiredHost(std::string_view name);
  std::optional<Host> OptionalHost(std::string_view name);
  /// A pair, "MASTER,SLAVE", which must be given.
  Pair RequiredPair(std::string_view name);
  std::optional<Pair> OptionalPair(std::string_view name);
  bool Flag(std::string_view name) { return fields.OptionalBool(name).value_or(false); }

  /// Returns the fleet with the operator's access to its hosts, once all options were read.
  absl::StatusOr<std::unique_ptr<FleetSession>> OpenFleet();
  /// The same for commands on what is in ZooKeeper, which need no login.
  absl::StatusOr<std::unique_ptr<FleetSession>> OpenMaps();
  /// Returns a function that reports progress of a step.
  Progress ProgressOf(std::string step) const;
};

// Each carries out a command of this name.

absl::StatusOr<Json> RunSet(FleetCommand& command);
absl::StatusOr<Json> RunUndo(FleetCommand& command);
absl::StatusOr<Json> RunWeight(FleetCommand& command);
absl::StatusOr<Json> RunInit(FleetCommand& command);
absl::StatusOr<Json> RunStatus(FleetCommand& command);
absl::StatusOr<Json> RunCheck(FleetCommand& command);
absl::StatusOr<Json> RunOpen(FleetCommand& command);
absl::StatusOr<Json> RunPromote(FleetCommand& command);
absl::StatusOr<Json> RunFence(FleetCommand& command);
absl::StatusOr<Json> RunMove(FleetCommand& command);
absl::StatusOr<Json> RunMoves(FleetCommand& command);
absl::StatusOr<Json> RunCancelMove(FleetCommand& command);
absl::StatusOr<Json> RunFinishMove(FleetCommand& command);
absl::StatusOr<Json> RunReplaceSlave(FleetCommand& command);
absl::StatusOr<Json> RunOperations(FleetCommand& command);
absl::StatusOr<Json> RunRelease(FleetCommand& command);

}  // namespace kvstore::shardops
