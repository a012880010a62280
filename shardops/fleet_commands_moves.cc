#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "shardops/answers.h"
#include "shardops/fleet_command.h"
#include "shardops/move.h"
#include "shardops/replace.h"

/// The commands that copy data from host to host.
namespace kvstore::shardops {

absl::StatusOr<Json> RunMove(FleetCommand& command) {
  const MoveRange range = command.Range(/*has_mod=*/true);
  const Pair to = command.RequiredPair("to");
  const MoveOptions options{
      .dry_run = command.Flag("dry_run"),
      .hold_writes = command.Flag("hold_writes"),
      .progress = command.events.progress,
      .datasets = command.options.open_catalog ? command.options.open_catalog() : ReadDatasets()};
  const auto fleet = command.OpenFleet();
  if (!fleet.ok()) return fleet.status();
  const auto moved = MoveShards(***fleet, range, to, options);
  if (!moved.ok()) return moved.status();
  return Json{{"switches", moved->switches},
              {"max_pause_ms", moved->max_pause_ms},
              {"copied_bytes", moved->copied_bytes}};
}

absl::StatusOr<Json> RunMoves(FleetCommand& command) {
  const auto fleet = command.OpenFleet();
  if (!fleet.ok()) return fleet.status();
  const auto moves = LoadMoves(***fleet);
  if (!moves.ok()) return moves.status();
  Json known = Json::array();
  for (const MoveRecord& move : moves->known) known.push_back(ToJson(move));
  Json damaged = Json::array();
  for (const DamagedMove& move : moves->damaged) damaged.push_back(ToJson(move));
  return Json{{"moves", std::move(known)}, {"damaged", std::move(damaged)}};
}

absl::StatusOr<Json> RunCancelMove(FleetCommand& command) {
  const MoveRange range = command.Range(/*has_mod=*/true);
  const auto from = command.OptionalPair("from");
  const auto to = command.OptionalPair("to");
  const auto gone = command.OptionalPair("gone");
  if (from.has_value() != to.has_value()) {
    command.fields.Fail(from ? "to" : "from",
                        "is missing; --from and --to are given together, and only for a move whose record "
                        "cannot be read");
  }
  const auto fleet = command.OpenFleet();
  if (!fleet.ok()) return fleet.status();
  std::optional<MovePairs> pairs;
  if (from && to) pairs = MovePairs{.from = *from, .to = *to};
  if (auto status = CancelMove(***fleet, range, pairs, gone); !status.ok()) return status;
  return Json::object();
}

absl::StatusOr<Json> RunFinishMove(FleetCommand& command) {
  const MoveRange range = command.Range(/*has_mod=*/true);
  const auto gone = command.OptionalPair("gone");
  const auto fleet = command.OpenFleet();
  if (!fleet.ok()) return fleet.status();
  if (auto status = FinishMove(***fleet, range, gone); !status.ok()) return status;
  return Json::object();
}

absl::StatusOr<Json> RunReplaceSlave(FleetCommand& command) {
  const Host slave = command.RequiredHost("host");
  const ReplaceOptions options{
      .by = command.OptionalHost("by"),
      .discard = command.Flag("discard"),
      .dry_run = command.Flag("dry_run"),
      .progress = [copied = command.ProgressOf("copy")](uint64_t bytes) { return copied(bytes, 0); }};
  const auto fleet = command.OpenFleet();
  if (!fleet.ok()) return fleet.status();
  if (auto status = ReplaceSlave(***fleet, slave, options); !status.ok()) return status;
  return Json::object();
}

}  // namespace kvstore::shardops
