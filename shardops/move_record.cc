#include "shardops/move_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "backends/mysql/driver/tables.h"
#include "json/json_text.h"

namespace kvstore::shardops {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 4> kStates = {"copying", "following", "switching", "moved"};

std::string Folder(const FleetOperator& fleet) { return fleet.root + "/moves"; }

/// The name of a record's node: "db-0-255", "mod-0-7".
std::string NameOf(const MoveRange& range) {
  return fmt::format("{}-{}-{}", ShardSpaceName(range.space), range.first, range.last);
}

/// The shards that NameOf has made this name of; none if it made none.
std::optional<MoveRange> RangeOf(std::string_view name) {
  const char* const end = name.data() + name.size();
  MoveRange range{.space = name.starts_with("mod") ? ShardSpace::kMod : ShardSpace::kId};
  // Whatever does not parse leaves a number as it is, so that the name which is made of it differs.
  std::from_chars(name.data() + name.find('-') + 1, end, range.first);
  std::from_chars(name.data() + name.rfind('-') + 1, end, range.last);
  if (range.first > range.last || NameOf(range) != name) return std::nullopt;
  return range;
}

std::string Node(const FleetOperator& fleet, const MoveRange& range) {
  return Folder(fleet) + "/" + NameOf(range);
}

Json ToJson(const Pair& pair) { return {pair.master.ToString(), pair.slave.ToString()}; }

Pair PairOf(const Json& json) {
  const auto host = [&](size_t i) {
    auto parsed = Host::Parse(json.at(i).get<std::string>());
    if (!parsed.ok()) throw Json::other_error::create(501, std::string(parsed.status().message()), &json);
    return *std::move(parsed);
  };
  return {host(0), host(1)};
}

std::string ToText(const MoveRecord& move) {
  Json leaves = Json::array();
  for (const Pair& pair : move.old_homes) leaves.push_back(ToJson(pair));
  return TextOf(Json{{"space", ShardSpaceName(move.range.space)},
                     {"range", {move.range.first, move.range.last}},
                     {"from", ToJson(move.from)},
                     {"to", ToJson(move.to)},
                     {"state", Name(move.state)},
                     {"log_file", move.position.file},
                     {"log_position", move.position.offset},
                     {"log_gtids", move.position.gtids},
                     {"leaves", std::move(leaves)},
                     {"began_ms", move.began_ms}});
}

absl::StatusOr<MoveRecord> Parse(const ZooKeeperNode& node) {
  try {
    const Json json = Json::parse(node.data);
    MoveRecord move;
    move.range = {json.at("space") == "mod" ? ShardSpace::kMod : ShardSpace::kId, json.at("range").at(0),
                  json.at("range").at(1)};
    move.from = PairOf(json.at("from"));
    move.to = PairOf(json.at("to"));
    const auto state = std::find(kStates.begin(), kStates.end(), json.at("state").get<std::string>());
    if (state == kStates.end())
      return absl::DataLossError("state: must be one of copying, following, switching, moved");
    move.state = static_cast<MoveState>(state - kStates.begin());
    // Records of versions that moved shards on MariaDB only have no sets.
    move.position = {.file = json.at("log_file"),
                     .offset = json.at("log_position"),
                     .gtids = json.value("log_gtids", std::string())};
    for (const Json& pair : json.at("leaves")) move.old_homes.push_back(PairOf(pair));
    move.began_ms = json.at("began_ms");
    move.version = node.version;
    return move;
  } catch (const Json::exception& error) {
    return absl::DataLossError(error.what());
  }
}

/// Whether a record could not be written because another process has changed it meanwhile.
bool WasOvertaken(const absl::Status& status) {
  return absl::IsAlreadyExists(status) || absl::IsFailedPrecondition(status) || absl::IsNotFound(status);
}

absl::Status OvertakenError(const MoveRecord& move) {
  return absl::AbortedError(fmt::format(
      "shards {}: another process works at this move: see kv shards move status", move.range.ToString()));
}

}  // namespace

std::string MoveRange::ToString() const {
  return fmt::format("{} {}-{}", ShardSpaceName(space), first, last);
}

absl::Status CheckRange(const MoveRange& range) {
  if (range.first > range.last) {
    return absl::InvalidArgumentError(
        fmt::format("range: {0}-{1} is reversed: the first shard stands before the last one, as in {1}-{0}",
                    range.first, range.last));
  }
  if (range.last <= ShardMap::kMaxShard) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("range: {}-{} goes beyond {}, the last shard that there can be", range.first, range.last,
                  ShardMap::kMaxShard));
}

bool MoveRange::Overlaps(const MoveRange& other) const {
  return space == other.space && first <= other.last && other.first <= last;
}

std::vector<std::string> MoveRange::Databases() const {
  std::vector<std::string> names;
  for (uint32_t shard = first; shard <= last; ++shard) {
    names.push_back(mysql::DatabaseName(space, shard));
  }
  return names;
}

std::string_view Name(MoveState state) { return kStates.at(static_cast<size_t>(state)); }

std::string OperationName(const MoveRange& range) { return "move shards " + range.ToString(); }

Operation AsOperation(const MoveRecord& move) {
  const MoveRange& range = move.range;
  const std::string arguments = fmt::format(
      "{}--range {}-{}", range.space == ShardSpace::kMod ? "--mod " : "", range.first, range.last);
  Operation operation{
      .what = OperationName(range),
      .lasting = true,
      .go_on = fmt::format("kv shards move {} --to {},{} goes on, kv shards move cancel {} gives it up",
                           arguments, move.to.master.ToString(), move.to.slave.ToString(), arguments),
      .claims = {Claim::Homes(range.space, range.first, range.last, ClaimMode::kExclusive)}};
  for (const Host& host : {move.from.master, move.from.slave, move.to.master, move.to.slave}) {
    operation.claims.push_back(Claim::Host(host.ToString(), ClaimMode::kShared));
  }
  return operation;
}

absl::StatusOr<Moves> LoadMoves(FleetOperator& fleet) {
  Moves moves;
  const auto names = fleet.zookeeper.Children(Folder(fleet));
  if (absl::IsNotFound(names.status())) return moves;
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    const std::string path = Folder(fleet) + "/" + name;
    const auto node = fleet.zookeeper.Get(path, /*watch=*/false);
    if (absl::IsNotFound(node.status())) continue;
    if (!node.ok()) return node.status();
    auto move = Parse(*node);
    if (move.ok() && NameOf(move->range) != name) {
      move = absl::DataLossError(fmt::format("holds the move of shards {}", move->range.ToString()));
    }
    if (move.ok()) {
      moves.known.push_back(*std::move(move));
    } else {
      moves.damaged.push_back({path, RangeOf(name), std::string(move.status().message()), node->version});
    }
  }
  std::sort(moves.known.begin(), moves.known.end(),
            [](const auto& a, const auto& b) { return a.range < b.range; });
  std::sort(moves.damaged.begin(), moves.damaged.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return moves;
}

std::string ToString(const DamagedMove& move) {
  return fmt::format(
      "the record of {} in ZooKeeper, {}, cannot be read: {}; it is damaged, or of a newer version of kv: "
      "see docs/runbook.md, 'The record of a move cannot be read'",
      move.range ? fmt::format("the move of shards {}", move.range->ToString()) : "a move of unknown shards",
      move.path, move.why);
}

absl::Status Moves::CheckRange(const MoveRange& range) const {
  for (const DamagedMove& move : damaged) {
    if (!move.range || move.range->Overlaps(range)) return Refuse(ToString(move));
  }
  return absl::OkStatus();
}

absl::Status Moves::CheckPair(const Maps& maps, const Pair& pair) const {
  const auto has = [&](const Host& host) { return host == pair.master || host == pair.slave; };
  for (const DamagedMove& move : damaged) {
    if (!move.range) return Refuse(ToString(move));
    const StoredMap* const stored = maps.Find(move.range->space);
    if (stored == nullptr) continue;
    for (const ShardRange& range : stored->map.ranges()) {
      if (!has(range.master) && !has(range.slave)) continue;
      const MoveRange there{.space = stored->space, .first = range.first, .last = range.last};
      if (move.range->Overlaps(there)) return Refuse(ToString(move));
    }
  }
  return absl::OkStatus();
}

absl::Status SaveMove(FleetOperator& fleet, MoveRecord& move) {
  const std::string path = Node(fleet, move.range);
  absl::Status status = move.version < 0 ? fleet.zookeeper.Create(path, ToText(move))
                                         : fleet.zookeeper.Set(path, ToText(move), move.version);
  if (WasOvertaken(status)) return OvertakenError(move);
  if (status.ok()) ++move.version;
  return status;
}

absl::Status ReplaceMove(FleetOperator& fleet, const MoveRecord& move, std::span<const MoveRecord> parts) {
  using Kind = ZooKeeperStep::Kind;
  const std::string path = Node(fleet, move.range);
  std::vector<ZooKeeperStep> steps = {{.kind = Kind::kDelete, .path = path, .version = move.version}};
  for (const MoveRecord& part : parts) {
    if (part.range == move.range) {
      steps.front() = {.kind = Kind::kSet, .path = path, .data = ToText(part), .version = move.version};
    } else {
      steps.push_back({.kind = Kind::kCreate, .path = Node(fleet, part.range), .data = ToText(part)});
    }
  }
  absl::Status status = fleet.zookeeper.Change(std::move(steps));
  return WasOvertaken(status) ? OvertakenError(move) : status;
}

const MoveRecord* FindMove(const std::vector<MoveRecord>& moves, const Pair& pair) {
  const auto has = [&](const Pair& one) {
    return one.master == pair.master || one.slave == pair.master || one.master == pair.slave ||
           one.slave == pair.slave;
  };
  for (const MoveRecord& move : moves) {
    if (move.state != MoveState::kMoved && (has(move.from) || has(move.to))) return &move;
  }
  return nullptr;
}

}  // namespace kvstore::shardops
