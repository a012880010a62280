#include "shardops/fleet_commands.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "shardmap/shard_map.h"
#include "shardops/fleet_command.h"

namespace kvstore::shardops {
namespace {

const CommandTable& Commands() {
  static const CommandTable commands = {
      {"set", &RunSet},
      {"undo", &RunUndo},
      {"weight", &RunWeight},
      {"init", &RunInit},
      {"status", &RunStatus},
      {"check", &RunCheck},
      {"open", &RunOpen},
      {"promote", &RunPromote},
      {"fence", &RunFence},
      {"move", &RunMove},
      {"moves", &RunMoves},
      {"cancel_move", &RunCancelMove},
      {"finish_move", &RunFinishMove},
      {"replace_slave", &RunReplaceSlave},
      {"operations", &RunOperations},
      {"release", &RunRelease},
  };
  return commands;
}

absl::Status UnknownCommandError(const std::string& name, const CommandTable& commands) {
  std::vector<std::string_view> known;
  for (const auto& [one, run] : commands) known.push_back(one);
  return absl::InvalidArgumentError(
      fmt::format("command: '{}' is none; these are: {}", name, fmt::join(known, ", ")));
}

}  // namespace

FleetCommands::FleetCommands(FleetOptions options, const CommandTable& more)
    : options_(std::move(options)), commands_(Commands()) {
  commands_.insert(more.begin(), more.end());
}

absl::StatusOr<Json> FleetCommands::Operate(const Json& command, const ShardEvents& events) {
  FleetCommand running{.options = options_, .events = events, .fields = JsonFields(command, ""), .who = ""};
  const std::string name = running.fields.String("command");
  running.who = running.fields.OptionalString("who").value_or("");
  if (auto status = running.fields.FirstMistake(); !status.ok()) return status;
  const auto found = commands_.find(name);
  if (found == commands_.end()) return UnknownCommandError(name, commands_);
  try {
    return found->second(running);
  } catch (const Json::exception& error) {
    // A server must not end because of what somebody has written into a node.
    return absl::DataLossError(
        fmt::format("a note about a host ({}/hosts in ZooKeeper) has a field of another type than this "
                    "version writes: {}. A newer "
                    "version wrote it, or somebody by hand: correct that field, or use that version",
                    options_.root, error.what()));
  }
}

MoveRange FleetCommand::Range(bool has_mod) {
  MoveRange range;
  if (has_mod && Flag("mod")) range.space = ShardSpace::kMod;
  range.first = static_cast<uint32_t>(fields.Uint("first", 0, ShardMap::kMaxShard));
  range.last = static_cast<uint32_t>(fields.Uint("last", 0, ShardMap::kMaxShard));
  fields.Fail(CheckRange(range));
  return range;
}

Host FleetCommand::RequiredHost(std::string_view name) {
  fields.Require(name);
  return OptionalHost(name).value_or(Host());
}

std::optional<Host> FleetCommand::OptionalHost(std::string_view name) {
  const auto text = fields.OptionalString(name);
  if (!text) return std::nullopt;
  auto host = Host::Parse(*text);
  if (host.ok()) return *std::move(host);
  fields.Fail(host.status());
  return std::nullopt;
}

Pair FleetCommand::RequiredPair(std::string_view name) {
  fields.Require(name);
  return OptionalPair(name).value_or(Pair());
}

std::optional<Pair> FleetCommand::OptionalPair(std::string_view name) {
  const auto text = fields.OptionalString(name);
  if (!text) return std::nullopt;
  auto pair = ParsePair(name, *text);
  if (pair.ok()) return *std::move(pair);
  fields.Fail(pair.status());
  return std::nullopt;
}

absl::StatusOr<std::unique_ptr<FleetSession>> FleetCommand::OpenFleet() {
  if (auto status = fields.Finish(); !status.ok()) return status;
  if (!options.access.ok()) return options.access.status();
  return std::make_unique<FleetSession>(options, who, events.line);
}

absl::StatusOr<std::unique_ptr<FleetSession>> FleetCommand::OpenMaps() {
  if (auto status = fields.Finish(); !status.ok()) return status;
  if (options.zookeeper.servers.empty()) {
    return absl::InvalidArgumentError(
        "config: names no ZooKeeper; without one, a store is open in a single process, and only that process "
        "knows its operations");
  }
  return std::make_unique<FleetSession>(options, who, events.line);
}

Progress FleetCommand::ProgressOf(std::string step) const {
  return [this, step = std::move(step)](uint64_t done, uint64_t total) {
    return !events.progress || events.progress(step, done, total);
  };
}

}  // namespace kvstore::shardops
