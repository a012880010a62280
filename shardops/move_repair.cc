#include "shardops/move_repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "backends/mysql/driver/tables.h"
#include "shardops/move_gone.h"

namespace kvstore::shardops {
namespace {

/// Returns the hosts that a move's operation claims, in the order of AsOperation: the pair that the shards
/// come from, then the pair that they go to. None if there are not four.
std::optional<MovePairs> PairsOf(const Operation& operation) {
  std::vector<Host> hosts;
  for (const Claim& claim : operation.claims) {
    if (claim.kind != Claim::Kind::kHost) continue;
    auto host = Host::Parse(claim.name);
    if (!host.ok()) return std::nullopt;
    hosts.push_back(*std::move(host));
  }
  if (hosts.size() != 4) return std::nullopt;
  return MovePairs{.from = {hosts[0], hosts[1]}, .to = {hosts[2], hosts[3]}};
}

/// "A,B", as options take it.
std::string ToString(const Pair& pair) {
  return fmt::format("{},{}", pair.master.ToString(), pair.slave.ToString());
}

/// Whether a host has old tables of a move's shards.
absl::StatusOr<bool> HasOldTables(FleetOperator& fleet, const Host& host, const MoveRange& range) {
  const auto admin = HostAdmin::Open(host, fleet.access);
  if (!admin.ok()) return admin.status();
  const auto names = (*admin)->ReadDatabases();
  if (!names.ok()) return names.status();
  const std::set<std::string> there(names->begin(), names->end());
  const std::vector<std::string> databases = range.Databases();
  return std::any_of(databases.begin(), databases.end(),
                     [&](const std::string& database) { return there.contains(mysql::MovedName(database)); });
}

}  // namespace

absl::StatusOr<MoveRecord> RebuildMove(FleetOperator& fleet, const Moves& moves, const DamagedMove& damaged,
                                       const MovePairs& named) {
  const MoveRange& range = *damaged.range;
  for (const DamagedMove& other : moves.damaged) {
    if (other.path != damaged.path && (!other.range || other.range->Overlaps(range)))
      return Refuse(ToString(other));
  }
  const auto operations = fleet.ledger->List();
  if (!operations.ok()) return operations.status();
  const std::string name = OperationName(range);
  const auto operation = std::find_if(operations->begin(), operations->end(),
                                      [&](const Operation& one) { return one.what == name; });
  if (operation == operations->end()) {
    return Refuse(
        fmt::format("shards {}: no such move is under way, since kv shards operations has no '{}': the "
                    "shards have moved, "
                    "or the move was cancelled. docs/runbook.md, 'The record of a move cannot be read', says "
                    "how to remove "
                    "{}",
                    range.ToString(), name, damaged.path));
  }
  const auto pairs = PairsOf(*operation);
  if (!pairs || operation->go_on.find("--to " + ToString(pairs->to)) == std::string::npos) {
    return Refuse(
        fmt::format("shards {}: the operation '{}' ({}) does not say which pairs the move is about, so "
                    "another version of this "
                    "program has begun it: continue or cancel the move with that version",
                    range.ToString(), name, operation->id));
  }
  if (!SameHosts(pairs->from, named.from) || !SameHosts(pairs->to, named.to)) {
    return Refuse(
        fmt::format("from, to: the move of shards {} is from {} to {} by the ledger (kv shards operations), "
                    "not from {} to "
                    "{}; nothing was changed",
                    range.ToString(), ToString(pairs->from), ToString(pairs->to), ToString(named.from),
                    ToString(named.to)));
  }
  for (const Pair& pair : {pairs->from, pairs->to}) {
    if (const MoveRecord* const other = FindMove(moves.known, pair); other != nullptr) {
      return Refuse(
          fmt::format("{} is in the move of shards {}, too: end that one first (kv shards move status)",
                      pair.master.ToString(), other->range.ToString()));
    }
  }
  return MoveRecord{.range = range,
                    .from = pairs->from,
                    .to = pairs->to,
                    .state = MoveState::kSwitching,
                    .began_ms = operation->since_ms,
                    .version = damaged.version};
}

std::vector<Pair> FindOldHomes(FleetOperator& fleet, const Maps& maps, const MoveRecord& move) {
  std::vector<Pair> asked = maps.Pairs();
  const bool has_target =
      std::any_of(asked.begin(), asked.end(), [&](const Pair& pair) { return pair.SharesHost(move.to); });
  if (!has_target) asked.push_back(move.to);
  std::vector<Pair> homes;
  for (const Pair& pair : asked) {
    // Old tables at the pair that the shards leave are of this move.
    if (pair.SharesHost(move.from)) continue;
    const auto has = HasOldTables(fleet, pair.master, move.range);
    if (!has.ok()) {
      fleet.report(
          fmt::format("{}\nif it has old tables of shards {}, in databases such as {}, drop them there by "
                      "hand once nobody needs them",
                      std::string(has.status().message()), move.range.ToString(),
                      mysql::MovedName(move.range.Databases().front())));
    } else if (*has) {
      homes.push_back(pair);
    }
  }
  return homes;
}

}  // namespace kvstore::shardops
