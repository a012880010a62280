#include "shardmap/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace kvstore {
namespace {

using Kind = ShardChange::Kind;

bool SameHosts(const ShardRange& a, const ShardRange& b) {
  return a.master == b.master && a.slave == b.slave;
}

Kind KindOf(const ShardRange* before, const ShardRange* after) {
  if (before == nullptr) return Kind::kOpened;
  if (after == nullptr) return Kind::kClosed;
  if (before->master == after->master) return Kind::kNewSlave;
  return after->master == before->slave ? Kind::kPromoted : Kind::kMoved;
}

std::string Pair(const ShardRange& range) {
  return fmt::format("{} (slave {})", range.master.ToString(), range.slave.ToString());
}

/// Whether the change goes on in the next run of shards.
bool Continues(const ShardChange& change, const ShardRange* before, const ShardRange* after) {
  const auto same = [](const std::optional<ShardRange>& a, const ShardRange* b) {
    return a.has_value() == (b != nullptr) && (b == nullptr || SameHosts(*a, *b));
  };
  return same(change.before, before) && same(change.after, after);
}

}  // namespace

std::string ShardChange::ToString() const {
  std::string shards =
      first == last ? fmt::format("shard {}", first) : fmt::format("shards {}..{}", first, last);
  switch (kind) {
    case Kind::kOpened:
      return fmt::format("{}: opened on {}", shards, Pair(*after));
    case Kind::kClosed:
      return fmt::format("{}: closed, were on {}", shards, Pair(*before));
    case Kind::kMoved:
      return fmt::format("{}: moved from {} to {}", shards, Pair(*before), Pair(*after));
    case Kind::kPromoted:
      return fmt::format("{}: {} promoted to master, was {}", shards, Pair(*after), Pair(*before));
    case Kind::kNewSlave:
      return fmt::format("{}: new slave {} of {}, was {}", shards, after->slave.ToString(),
                         after->master.ToString(), before->slave.ToString());
  }
  return shards;
}

std::vector<ShardChange> Diff(const ShardMap& before, const ShardMap& after) {
  // Between two neighbouring cuts all shards have the same entry, in either map.
  std::vector<uint32_t> cuts = {0, ShardMap::kMaxShard + 1};
  for (const ShardMap* map : {&before, &after}) {
    for (const ShardRange& range : map->ranges()) cuts.insert(cuts.end(), {range.first, range.last + 1});
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<ShardChange> changes;
  for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
    const uint32_t last = *std::next(cut) - 1;
    const ShardRange* was = before.Find(*cut);
    const ShardRange* is = after.Find(*cut);
    if (was == nullptr && is == nullptr) continue;
    if (was != nullptr && is != nullptr && SameHosts(*was, *is)) continue;
    if (!changes.empty() && changes.back().last + 1 == *cut && Continues(changes.back(), was, is)) {
      changes.back().last = last;
      continue;
    }
    ShardChange change{.kind = KindOf(was, is), .first = *cut, .last = last};
    if (was != nullptr) change.before = *was;
    if (is != nullptr) change.after = *is;
    changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace kvstore
