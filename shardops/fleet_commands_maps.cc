#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "shardmap/weights.h"
#include "shardops/answers.h"
#include "shardops/fleet_command.h"
#include "shardops/map_edit.h"
#include "shardops/stored_weights.h"

/// The commands on the shard maps and the weights of shards.
namespace kvstore::shardops {
namespace {

/// The options that both edits have. Their texts are still missing.
MapEdit ReadEdit(FleetCommand& command) {
  MapEdit edit{.space = command.Flag("mod") ? ShardSpace::kMod : ShardSpace::kId,
               .unchecked = command.Flag("unchecked"),
               .can_ask = command.options.has_operator,
               .dry_run = command.Flag("dry_run")};
  edit.seen = command.fields.OptionalString("seen");
  return edit;
}

/// Opens the maps for an edit, with the operator's access to the hosts where the configuration has one.
absl::StatusOr<std::unique_ptr<FleetSession>> OpenForEdit(FleetCommand& command) {
  return command.options.has_operator ? command.OpenFleet() : command.OpenMaps();
}

absl::StatusOr<Json> Edit(FleetOperator& fleet, const MapEdit& edit) {
  const auto edited = EditMap(fleet, edit);
  if (!edited.ok()) return edited.status();
  Json answer = {{"changes", ToJson(edited->changes)},
                 {"hosts_asked", edited->asked},
                 {"should_ask", edited->should_ask},
                 {"open_shards", edited->open_shards},
                 {"seen", edited->seen}};
  if (edited->first) answer["made"] = edited->path;
  return answer;
}

}  // namespace

absl::StatusOr<Json> RunSet(FleetCommand& command) {
  MapEdit edit = ReadEdit(command);
  edit.text = command.fields.String("map");
  const auto fleet = OpenForEdit(command);
  if (!fleet.ok()) return fleet.status();
  return Edit(***fleet, edit);
}

absl::StatusOr<Json> RunUndo(FleetCommand& command) {
  MapEdit edit = ReadEdit(command);
  const std::string to = command.fields.OptionalString("to").value_or("");
  const auto fleet = OpenForEdit(command);
  if (!fleet.ok()) return fleet.status();
  auto earlier = EarlierMap(***fleet, edit.space, to);
  if (!earlier.ok()) return earlier.status();
  edit.text = *std::move(earlier);
  return Edit(***fleet, edit);
}

absl::StatusOr<Json> RunWeight(FleetCommand& command) {
  const auto weight = command.fields.OptionalUint("weight", 0, ShardWeight::kMax);
  std::optional<MoveRange> range;
  if (weight) range = command.Range(/*has_mod=*/false);
  const auto fleet = command.OpenMaps();
  if (!fleet.ok()) return fleet.status();
  ZooKeeper& zookeeper = (***fleet).zookeeper;
  const std::string& root = command.options.root;
  const auto weights =
      range ? SetWeight(zookeeper, root, {range->first, range->last, static_cast<uint32_t>(*weight)})
            : ReadWeights(zookeeper, root);
  if (!weights.ok()) return weights.status();
  return Json{{"weights", Json::parse(ToJson(*weights))}};
}

}  // namespace kvstore::shardops
