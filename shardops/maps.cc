#include "shardops/maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kvstore::shardops {

absl::StatusOr<Maps> Maps::Load(ZooKeeper& zookeeper, const std::string& root) {
  Maps maps;
  // What somebody has just published is seen.
  if (auto status = zookeeper.Sync(root); !status.ok() && !absl::IsNotFound(status)) return status;
  for (const bool mod : {false, true}) {
    const std::string path = root + (mod ? "/shards/mod" : "/shards/id");
    const auto node = zookeeper.Get(path, /*watch=*/false);
    if (absl::IsNotFound(node.status())) continue;
    if (!node.ok()) return node.status();
    auto map = ShardMap::Parse(node->data);
    if (!map.ok()) {
      return absl::Status(map.status().code(),
                          fmt::format("{}: {}", path, std::string(map.status().message())));
    }
    maps.maps_.push_back({path, mod, node->version, *std::move(map)});
  }
  if (maps.maps_.empty()) return absl::NotFoundError(fmt::format("{}/shards: there is no shard map", root));
  return maps;
}

std::vector<Pair> Maps::Pairs() const {
  std::vector<Pair> pairs;
  for (const StoredMap& stored : maps_) {
    for (const ShardRange& range : stored.map.ranges()) pairs.push_back({range.master, range.slave});
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

std::string Maps::ShardsOf(const Pair& pair) const {
  std::string text;
  for (const StoredMap& stored : maps_) {
    for (const ShardRange& range : stored.map.ranges()) {
      if (range.master != pair.master || range.slave != pair.slave) continue;
      text += fmt::format("{}{} {}-{}", text.empty() ? "" : ", ", stored.mod ? "mod" : "db", range.first,
                          range.last);
    }
  }
  return text;
}

absl::Status Maps::Replace(ZooKeeper& zookeeper, const Pair& before, const Pair& after) const {
  std::vector<ZooKeeperStep> steps;
  for (const StoredMap& stored : maps_) {
    std::vector<ShardRange> ranges(stored.map.ranges().begin(), stored.map.ranges().end());
    for (ShardRange& range : ranges) {
      if (range.master != before.master || range.slave != before.slave) continue;
      range.master = after.master;
      range.slave = after.slave;
    }
    const auto next = ShardMap::Of(std::move(ranges));
    if (!next.ok()) return next.status();
    if (*next == stored.map) continue;
    steps.push_back({ZooKeeperStep::Kind::kSet, stored.path, next->ToJson(), stored.version});
  }
  return zookeeper.Change(std::move(steps));
}

}  // namespace kvstore::shardops
