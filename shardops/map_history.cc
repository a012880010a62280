#include "shardops/map_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <utility>

#include "base/clock.h"
#include "base/process.h"
#include "json/json_fields.h"
#include "shardmap/nodes.h"

namespace kvstore::shardops {
namespace {

std::string Folder(const std::string& root, ShardSpace space) {
  return root + (space == ShardSpace::kMod ? "/history/mod" : "/history/id");
}

/// Returns the names of the saved maps, the oldest first.
absl::StatusOr<std::vector<std::string>> Names(ZooKeeper& zookeeper, const std::string& folder) {
  auto names = zookeeper.Children(folder);
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  if (names.ok()) std::sort(names->begin(), names->end());
  return names;
}

KeptMap Parse(const std::string& name, const std::string& text) {
  KeptMap kept;
  kept.name = name;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return kept;
  JsonFields fields(json, "");
  kept.at_ms = fields.Uint("at_ms", 0, UINT64_MAX);
  kept.who = fields.String("who");
  if (auto map = ShardMap::Parse(fields.String("map")); map.ok()) kept.map = *std::move(map);
  return kept;
}

absl::StatusOr<KeptMap> Read(ZooKeeper& zookeeper, const std::string& folder, const std::string& name) {
  const auto node = zookeeper.Get(fmt::format("{}/{}", folder, name), /*watch=*/false);
  if (!node.ok()) return node.status();
  return Parse(name, node->data);
}

/// Returns the step that saves a map in the history.
///
/// at_ms, who  as in KeptMap.
ZooKeeperStep HistoryStep(const std::string& root, ShardSpace space, const std::string& text, uint64_t at_ms,
                          const std::string& who) {
  const Json json = {{"at_ms", at_ms}, {"who", who}, {"map", text}};
  // Names sort by when the maps were saved. The random number keeps apart those of the same millisecond.
  return ZooKeeperStep{
      .kind = ZooKeeperStep::Kind::kCreate,
      .path = fmt::format("{}/{:013}-{:08x}", Folder(root, space), WallClockMs(), std::random_device{}()),
      .data = json.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

/// Adds a step to a transaction, unless the transaction would have too much data for ZooKeeper, which closes
/// the connection of a client that sends about 1 MiB. Returns whether it was added.
bool AddIfFits(std::vector<ZooKeeperStep>& steps, ZooKeeperStep step) {
  size_t bytes = step.data.size();
  for (const ZooKeeperStep& one : steps) bytes += one.data.size();
  if (bytes > ZooKeeper::kMaxNodeBytes) return false;
  steps.push_back(std::move(step));
  return true;
}

}  // namespace

absl::Status PrepareHistory(ZooKeeper& zookeeper, const std::string& root) {
  for (const ShardSpace space : {ShardSpace::kId, ShardSpace::kMod}) {
    const auto current = zookeeper.Get(MapPath(root, space), /*watch=*/false);
    if (absl::IsNotFound(current.status())) continue;
    if (!current.ok()) return current.status();
    const std::string folder = Folder(root, space);
    const auto names = Names(zookeeper, folder);
    if (!names.ok()) return names.status();
    const auto map = ShardMap::Parse(current->data);
    const auto last = names->empty() ? absl::NotFoundError("none") : Read(zookeeper, folder, names->back());
    if (map.ok() && (!last.ok() || last->map != *map)) {
      // ZooKeeper knows when this map was written, but nobody knows by whom.
      const std::string who = fmt::format("not known; saved by {}", ProcessName());
      const ZooKeeperStep step = HistoryStep(root, space, map->ToStored(), current->changed_ms, who);
      if (auto status = zookeeper.Create(step.path, step.data); !status.ok()) return status;
    }
    for (size_t i = 0; i + kKeptMaps < names->size(); ++i) {
      absl::Status status = zookeeper.Delete(fmt::format("{}/{}", folder, (*names)[i]));
      if (!status.ok() && !absl::IsNotFound(status)) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status CreateMap(ZooKeeper& zookeeper, const std::string& root, ShardSpace space,
                       const std::string& map, const std::string& who) {
  const std::string path = MapPath(root, space);
  std::vector<ZooKeeperStep> steps = {{.kind = ZooKeeperStep::Kind::kCreate, .path = path, .data = map}};
  if (AddIfFits(steps, HistoryStep(root, space, map, WallClockMs(), who))) {
    // A transaction does not create the nodes above its own.
    for (const std::string& above : {root + "/shards", Folder(root, space)}) {
      // The node may exist already. If it cannot be created, the transaction below fails, too.
      zookeeper.Create(above, "").IgnoreError();
    }
    absl::Status status = zookeeper.Change(std::move(steps));
    if (!absl::IsNotFound(status) && !absl::IsPermissionDenied(status)) return status;
  }
  return zookeeper.Create(path, map);
}

absl::Status PutInForce(ZooKeeperLedger& ledger, const Held& held, const std::string& root,
                        std::vector<ZooKeeperStep> steps) {
  std::vector<ZooKeeperStep> kept = steps;
  for (const ZooKeeperStep& step : steps) {
    if (step.kind != ZooKeeperStep::Kind::kSet) continue;
    const ShardSpace space =
        step.path == MapPath(root, ShardSpace::kMod) ? ShardSpace::kMod : ShardSpace::kId;
    AddIfFits(kept, HistoryStep(root, space, step.data, WallClockMs(), ledger.who()));
  }
  absl::Status status = ledger.Change(held, std::move(kept));
  // The history does not exist, or belongs to another user. The map is put in force all the same.
  if (absl::IsNotFound(status) || absl::IsPermissionDenied(status)) {
    status = ledger.Change(held, std::move(steps));
  }
  return status;
}

absl::StatusOr<std::vector<KeptMap>> ReadHistory(ZooKeeper& zookeeper, const std::string& root,
                                                 ShardSpace space) {
  const std::string folder = Folder(root, space);
  const auto names = Names(zookeeper, folder);
  if (!names.ok()) return names.status();
  std::vector<KeptMap> history;
  for (auto name = names->rbegin(); name != names->rend(); ++name) {
    auto kept = Read(zookeeper, folder, *name);
    // PrepareHistory may have just removed it, if it was the oldest.
    if (absl::IsNotFound(kept.status())) continue;
    if (!kept.ok()) return kept.status();
    history.push_back(*std::move(kept));
  }
  return history;
}

}  // namespace kvstore::shardops
