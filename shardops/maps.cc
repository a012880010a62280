#include "shardops/maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/files.h"
#include "shardmap/nodes.h"
#include "shardops/map_history.h"

namespace kvstore::shardops {

absl::StatusOr<Pair> ParsePair(std::string_view option, std::string_view text) {
  const size_t comma = text.find(',');
  if (comma == std::string_view::npos) {
    return absl::InvalidArgumentError(
        fmt::format("{0}: '{1}' is not a pair of hosts; write --{0} MASTER,SLAVE", option, text));
  }
  auto master = Host::Parse(text.substr(0, comma));
  if (!master.ok()) return master.status();
  auto slave = Host::Parse(text.substr(comma + 1));
  if (!slave.ok()) return slave.status();
  return Pair{*std::move(master), *std::move(slave)};
}

absl::StatusOr<Maps> Maps::LoadNodes(ZooKeeper& zookeeper, const std::string& root, bool skip_damaged) {
  Maps maps;
  maps.root_ = root;
  // After the sync, this session sees what others have published before.
  if (auto status = zookeeper.Sync(root); !status.ok() && !absl::IsNotFound(status)) return status;
  for (const ShardSpace space : {ShardSpace::kId, ShardSpace::kMod}) {
    const std::string path = MapPath(root, space);
    const auto node = zookeeper.Get(path, /*watch=*/false);
    if (absl::IsNotFound(node.status())) continue;
    if (!node.ok()) return node.status();
    auto map = ShardMap::Parse(node->data);
    if (!map.ok() && skip_damaged) continue;
    if (!map.ok()) {
      return absl::Status(map.status().code(),
                          fmt::format("{}: {}; {} puts the last good map in force again", path,
                                      std::string(map.status().message()),
                                      space == ShardSpace::kMod ? "kv shards undo --mod" : "kv shards undo"));
    }
    maps.maps_.push_back({path, space, node->version, *std::move(map)});
  }
  return maps;
}

absl::StatusOr<Maps> Maps::Load(ZooKeeper& zookeeper, const std::string& root) {
  auto maps = LoadNodes(zookeeper, root, /*skip_damaged=*/false);
  if (maps.ok() && maps->maps_.empty()) {
    return absl::NotFoundError(fmt::format(
        "{}/shards: there is no shard map yet: kv shards set makes the first one of a file, then "
        "kv shards init makes the databases of its shards. If there was one before, this ZooKeeper "
        "has lost it: set none by hand, kv backup restore --catalog brings it back "
        "(docs/runbook.md, 'ZooKeeper is away')",
        root));
  }
  return maps;
}

absl::StatusOr<Maps> Maps::LoadReadable(ZooKeeper& zookeeper, const std::string& root) {
  return LoadNodes(zookeeper, root, /*skip_damaged=*/true);
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
      text += fmt::format("{}{} {}-{}", text.empty() ? "" : ", ", ShardSpaceName(stored.space), range.first,
                          range.last);
    }
  }
  return text;
}

absl::Status Maps::Replace(ZooKeeperLedger& ledger, const Held& held, const Pair& before,
                           const Pair& after) const {
  std::vector<ZooKeeperStep> steps;
  for (const StoredMap& stored : maps_) {
    std::vector<ShardRange> ranges(stored.map.ranges().begin(), stored.map.ranges().end());
    for (ShardRange& range : ranges) {
      if (range.master != before.master || range.slave != before.slave) continue;
      range.master = after.master;
      range.slave = after.slave;
    }
    const auto next = ShardMap::Create(std::move(ranges));
    if (!next.ok()) return next.status();
    if (*next == stored.map) continue;
    steps.push_back({ZooKeeperStep::Kind::kSet, stored.path, next->ToStored(), stored.version});
  }
  return Change(ledger, held, std::move(steps));
}

absl::Status Maps::Change(ZooKeeperLedger& ledger, const Held& held, std::vector<ZooKeeperStep> steps) const {
  for (size_t changed = steps.size(); const StoredMap& stored : maps_) {
    const auto end = steps.begin() + static_cast<std::ptrdiff_t>(changed);
    const bool has =
        std::any_of(steps.begin(), end, [&](const ZooKeeperStep& step) { return step.path == stored.path; });
    if (changed == 0 || has) continue;
    steps.push_back({.kind = ZooKeeperStep::Kind::kCheck, .path = stored.path, .version = stored.version});
  }
  return PutInForce(ledger, held, root_, std::move(steps));
}

absl::StatusOr<Maps> Maps::LoadCopies(const std::filesystem::path& folder) {
  Maps maps;
  for (const ShardSpace space : {ShardSpace::kId, ShardSpace::kMod}) {
    const auto text = ReadFile(MapCopy(folder, space));
    if (!text.ok()) continue;
    auto map = ShardMap::Parse(*text);
    if (!map.ok()) return map.status();
    maps = maps.With(space, *map);
  }
  if (maps.maps_.empty()) return absl::NotFoundError(folder.string() + ": has no copy of the shard maps");
  return maps;
}

Maps Maps::With(ShardSpace space, const ShardMap& next) const {
  Maps maps = *this;
  std::erase_if(maps.maps_, [&](const StoredMap& stored) { return stored.space == space; });
  maps.maps_.push_back({.path = MapPath(root_, space), .space = space, .map = next});
  return maps;
}

std::map<Host, std::string> Maps::Disagreements() const {
  std::map<Host, std::set<Pair>> pairs;
  for (const Pair& pair : Pairs()) {
    pairs[pair.master].insert(pair);
    pairs[pair.slave].insert(pair);
  }
  std::map<Host, std::string> found;
  for (const auto& [host, in] : pairs) {
    if (in.size() < 2) continue;
    std::vector<std::string> roles;
    for (const Pair& pair : in) {
      roles.push_back(pair.master == host
                          ? fmt::format("the master of {}", ShardsOf(pair))
                          : fmt::format("the slave of {} for {}", pair.master.ToString(), ShardsOf(pair)));
    }
    found[host] = fmt::format("the maps have it in {} pairs: {}", in.size(), fmt::join(roles, ", "));
  }
  return found;
}

const StoredMap* Maps::Find(ShardSpace space) const {
  const auto found = std::find_if(maps_.begin(), maps_.end(),
                                  [&](const StoredMap& stored) { return stored.space == space; });
  return found == maps_.end() ? nullptr : &*found;
}

std::optional<Pair> Maps::PairOf(ShardSpace space, uint32_t shard) const {
  const StoredMap* const stored = Find(space);
  const ShardRange* const range = stored == nullptr ? nullptr : stored->map.Find(shard);
  if (range == nullptr) return std::nullopt;
  return Pair{range->master, range->slave};
}

absl::Status Maps::Assign(ZooKeeperLedger& ledger, const Held& held, ShardSpace space, uint32_t first,
                          uint32_t last, const Pair& to) const {
  const StoredMap* const stored = Find(space);
  std::vector<ShardRange> ranges;
  // Adds a range. With `joins`, a range that continues the last one, on the same pair, is merged into it.
  const auto add = [&](uint32_t begin, uint32_t end, const Pair& pair, bool joins) {
    if (begin > end) return;
    ShardRange* const last_one = ranges.empty() ? nullptr : &ranges.back();
    if (joins && last_one != nullptr && last_one->last + 1 == begin && last_one->master == pair.master &&
        last_one->slave == pair.slave) {
      last_one->last = end;
      return;
    }
    ranges.push_back({begin, end, pair.master, pair.slave});
  };
  uint32_t given = 0;
  for (const ShardRange& range : stored == nullptr ? std::span<const ShardRange>() : stored->map.ranges()) {
    const Pair pair{range.master, range.slave};
    if (range.last < first || range.first > last) {
      // The range right after the shards may continue them, as when they come back from where they were.
      add(range.first, range.last, pair, /*joins=*/range.first == last + 1);
      continue;
    }
    const uint32_t begin = std::max(range.first, first);
    const uint32_t end = std::min(range.last, last);
    if (range.first < begin) add(range.first, begin - 1, pair, /*joins=*/false);
    add(begin, end, to, /*joins=*/true);
    add(end + 1, range.last, pair, /*joins=*/true);
    given += end - begin + 1;
  }
  if (given != last - first + 1) {
    return absl::FailedPreconditionError(
        fmt::format("range: {}-{} has shards that are not open", first, last));
  }
  const auto next = ShardMap::Create(std::move(ranges));
  if (!next.ok()) return next.status();
  return Set(ledger, held, space, *next);
}

absl::Status Maps::Set(ZooKeeperLedger& ledger, const Held& held, ShardSpace space,
                       const ShardMap& next) const {
  const StoredMap* const stored = Find(space);
  if (stored == nullptr)
    return absl::FailedPreconditionError(MapPath(root_, space) + ": there is no such map");
  return Change(ledger, held, {{ZooKeeperStep::Kind::kSet, stored->path, next.ToStored(), stored->version}});
}

absl::Status Maps::SetText(ZooKeeperLedger& ledger, const Held& held, ShardSpace space,
                           const std::string& text, int32_t version) const {
  return Change(ledger, held, {{ZooKeeperStep::Kind::kSet, MapPath(root_, space), text, version}});
}

}  // namespace kvstore::shardops
