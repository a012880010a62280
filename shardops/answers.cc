#include "shardops/answers.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace kvstore::shardops {
namespace {

Json PairOfRange(const std::optional<ShardRange>& range) {
  if (!range) return nullptr;
  return {{"master", range->master.ToString()}, {"slave", range->slave.ToString()}};
}

}  // namespace

Json ToJson(const HostReport& report) {
  Json json = {{"host", report.host.ToString()},
               {"role", report.master ? "master" : "slave"},
               {"pair", {report.pair.master.ToString(), report.pair.slave.ToString()}},
               {"shards", report.shards},
               {"problems", report.problems}};
  if (!report.state) return json;
  const HostState& state = *report.state;
  json["version"] = state.version;
  json["read_only"] = state.read_only;
  json["gtid"] = state.gtid;
  json["connections"] = state.connections;
  json["bytes"] = report.bytes;
  json["clock_ahead_ms"] = state.clock_ahead_ms;
  json["semi_sync"] = report.master ? state.semi_sync_active : state.semi_sync_slave_active;
  if (state.following) {
    json["follows"] = state.following->master.ToString();
    if (state.following->lag_s) json["lag_s"] = *state.following->lag_s;
  }
  return json;
}

Json ToJson(const FleetCheck& check) {
  Json not_asked = Json::array();
  for (const Host& host : check.not_asked) not_asked.push_back(host.ToString());
  return {{"problems", check.problems}, {"lines", check.lines}, {"not_asked", std::move(not_asked)}};
}

Json ToJson(const MoveRecord& move) {
  Json leaves = Json::array();
  for (const Pair& pair : move.old_homes) leaves.push_back(pair.master.ToString());
  return {{"space", ShardSpaceName(move.range.space)},
          {"range", {move.range.first, move.range.last}},
          {"from", {move.from.master.ToString(), move.from.slave.ToString()}},
          {"to", {move.to.master.ToString(), move.to.slave.ToString()}},
          {"state", Name(move.state)},
          {"old_tables_at", std::move(leaves)},
          {"began_ms", move.began_ms}};
}

Json ToJson(const DamagedMove& move) {
  Json json = {{"path", move.path}, {"problem", ToString(move)}};
  if (move.range) {
    json["space"] = ShardSpaceName(move.range->space);
    json["range"] = {move.range->first, move.range->last};
  }
  return json;
}

Json ToJson(const std::vector<ShardChange>& changes) {
  Json list = Json::array();
  for (const ShardChange& change : changes) {
    list.push_back({{"range", {change.first, change.last}},
                    {"before", PairOfRange(change.before)},
                    {"after", PairOfRange(change.after)}});
  }
  return list;
}

}  // namespace kvstore::shardops
