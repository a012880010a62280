#include "shardops/map_edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "coordination/zookeeper.h"
#include "shardmap/mod_shard.h"
#include "shardmap/nodes.h"
#include "shardops/map_check.h"
#include "shardops/map_history.h"
#include "shardops/maps.h"

namespace kvstore::shardops {
namespace {

/// EditedMap::seen where there is no map.
constexpr char kNoneSeen[] = "none";

/// Returns an edit of the map as an operation of the ledger, with exclusive claims on the shards that it
/// opens or closes. Edits of hosts claim nothing, because they may be emergencies.
Operation EditOf(ShardSpace space, const std::vector<ShardChange>& changes) {
  // Neighbours are claimed together: a map may open 65,536 shards, each on another pair.
  std::vector<std::pair<uint32_t, uint32_t>> claimed;
  for (const ShardChange& change : changes) {
    if (change.before && change.after) continue;
    if (!claimed.empty() && claimed.back().second + 1 == change.first) {
      claimed.back().second = change.last;
    } else {
      claimed.emplace_back(change.first, change.last);
    }
  }
  Operation operation{.what = "set the shard map"};
  for (const auto& [first, last] : claimed)
    operation.claims.push_back(Claim::Shards(space, first, last, ClaimMode::kExclusive));
  return operation;
}

/// The map that an edit replaces.
struct Replaced {
  absl::StatusOr<ZooKeeperNode> node = absl::NotFoundError("none");  ///< An error if there is no map yet.
  absl::StatusOr<ShardMap> map = absl::NotFoundError("none");        ///< An error also if it is damaged.
  std::vector<ShardChange> changes;  ///< None without `map`: what is damaged has no diff.

  /// Whether shards may get other hosts, so that the hosts must be asked.
  bool MayTakeShards() const { return node.ok() && (!map.ok() || !changes.empty()); }
};

/// Loads the map that an edit replaces, and compares it with the next one.
absl::StatusOr<Replaced> LoadReplaced(FleetOperator& fleet, ShardSpace space, const ShardMap& next) {
  Replaced replaced{.node = fleet.zookeeper.Get(MapPath(fleet.root, space), /*watch=*/false)};
  if (absl::IsNotFound(replaced.node.status())) return replaced;
  if (!replaced.node.ok()) return replaced.node.status();
  replaced.map = ShardMap::Parse(replaced.node->data);
  if (!replaced.map.ok()) return replaced;
  if (space == ShardSpace::kMod) {
    if (auto status = ValidateModUpdate(*replaced.map, next); !status.ok()) return status;
  }
  replaced.changes = Diff(*replaced.map, next);
  return replaced;
}

/// Checks that the two maps would not contradict each other, nor the hosts the map. Returns whether the hosts
/// were asked.
///
/// now  The maps in force; one that does not parse is left out. It is repaired by this edit, or by the next
///      one if it is the other map.
absl::StatusOr<bool> CheckEdit(FleetOperator& fleet, const MapEdit& edit, const Maps& now,
                               const Replaced& replaced, const ShardMap& next) {
  if (edit.unchecked) return false;
  if (!edit.can_ask && replaced.MayTakeShards()) {
    return absl::FailedPreconditionError(
        "no host was asked whether it has the shards of this map, since no operator's login was given; "
        "nothing was written. Run the command with --config and a configuration that has mysql.operator "
        "(docs/runbook.md). --unchecked puts the map in force without asking; the risk: where a host does "
        "not have all that was written to its shards, clients read old data or none, and write beside what "
        "is there");
  }
  auto ask = AskHosts::kNone;
  if (edit.can_ask) {
    const bool damaged = replaced.node.ok() && !replaced.map.ok();
    ask = damaged ? AskHosts::kAll : AskHosts::kChanges;
  }
  const auto problems = FindMapProblems(fleet, now, edit.space, next, ask);
  if (problems.empty()) return edit.can_ask;
  return absl::FailedPreconditionError(fmt::format("{}\nnothing was written", fmt::join(problems, "\n")));
}

/// Writes the map in place of the one that was loaded.
///
/// stored  The form in which it is written.
absl::Status WriteMap(FleetOperator& fleet, const MapEdit& edit, const Maps& now, const Replaced& replaced,
                      const std::string& stored) {
  if (!replaced.node.ok()) {
    return CreateMap(fleet.zookeeper, fleet.root, edit.space, stored, fleet.ledger->who());
  }
  // An edit may be an emergency, so it must not fail because of the history.
  PrepareHistory(fleet.zookeeper, fleet.root).IgnoreError();
  const auto held = fleet.ledger->Begin(EditOf(edit.space, replaced.changes));
  if (!held.ok()) return held.status();
  if (!edit.unchecked) {
    // While the hosts were asked, the other map may have changed, with which this one was compared.
    return now.SetText(*fleet.ledger, *held, edit.space, stored, replaced.node->version);
  }
  return PutInForce(
      *fleet.ledger, *held, fleet.root,
      {{ZooKeeperStep::Kind::kSet, MapPath(fleet.root, edit.space), stored, replaced.node->version}});
}

}  // namespace

absl::StatusOr<ShardMap> ParseMap(std::string_view text, ShardSpace space) {
  auto map = ShardMap::Parse(text);
  if (!map.ok() || space == ShardSpace::kId) return map;
  if (auto status = ValidateModMap(*map); !status.ok()) return status;
  return map;
}

absl::Status NoMapError(std::string_view where, ShardSpace space) {
  return absl::NotFoundError(fmt::format(
      "{}: there is no map yet. Write one to a file; kv shards set {}FILE makes it the map, then kv shards "
      "init makes the databases of its shards (docs/mysql.md, 'From nothing to a fleet'). If there was a map "
      "before, this ZooKeeper has lost it: set none by hand, kv backup restore --catalog brings it back "
      "(docs/runbook.md, 'ZooKeeper is away')",
      where, space == ShardSpace::kMod ? "--mod " : ""));
}

absl::Status UnreadableKeptMapError(std::string_view name) {
  return absl::DataLossError(
      fmt::format("the map kept as {} cannot be read: its node has something else", name));
}

absl::StatusOr<EditedMap> EditMap(FleetOperator& fleet, const MapEdit& edit) {
  const auto next = ParseMap(edit.text, edit.space);
  if (!next.ok()) return next.status();
  const auto replaced = LoadReplaced(fleet, edit.space, *next);
  if (!replaced.ok()) return replaced.status();
  EditedMap edited{.changes = replaced->changes,
                   .path = MapPath(fleet.root, edit.space),
                   .first = !replaced->node.ok(),
                   .open_shards = next->open_shards(),
                   .should_ask = !replaced->node.ok() || replaced->MayTakeShards(),
                   .seen = replaced->node.ok() ? std::to_string(replaced->node->version) : kNoneSeen};
  if (edit.seen && *edit.seen != edited.seen) {
    return absl::FailedPreconditionError(
        "seen: somebody has changed the map since then; nothing was written. Run the command again, which "
        "shows what it would change now");
  }
  if (replaced->map.ok()) {
    for (const ShardChange& change : edited.changes) fleet.report(change.ToString());
    if (edited.changes.empty()) fleet.report("no change");
  }
  // A text that is short enough is stored as its author wrote it.
  const std::string stored = edit.text.size() <= ShardMap::kMaxPlainBytes ? edit.text : next->ToStored();
  if (replaced->node.ok() && ShardMap::IsCompact(stored) && !ShardMap::IsCompact(replaced->node->data)) {
    fleet.report(
        "this map is stored in the compact form, which programs older than KVStore 0.1.0 cannot read: they "
        "keep the map that they have (docs/operations.md, 'The shard map')");
  }
  const auto now = Maps::LoadReadable(fleet.zookeeper, fleet.root);
  if (!now.ok()) return now.status();
  const auto asked = CheckEdit(fleet, edit, *now, *replaced, *next);
  if (!asked.ok()) return asked.status();
  edited.asked = *asked;
  if (edit.dry_run) return edited;
  if (auto status = WriteMap(fleet, edit, *now, *replaced, stored); !status.ok()) return status;
  return edited;
}

absl::StatusOr<std::string> EarlierMap(FleetOperator& fleet, ShardSpace space, const std::string& to) {
  const std::string path = MapPath(fleet.root, space);
  const auto node = fleet.zookeeper.Get(path, /*watch=*/false);
  if (absl::IsNotFound(node.status())) return NoMapError(path, space);
  if (!node.ok()) return node.status();
  const auto history = ReadHistory(fleet.zookeeper, fleet.root, space);
  if (!history.ok()) return history.status();
  const auto current = ShardMap::Parse(node->data);
  const auto found = std::find_if(history->begin(), history->end(), [&](const KeptMap& kept) {
    return to.empty() ? !current.ok() || kept.map != *current : kept.name == to;
  });
  if (found != history->end() && found->map) return found->map->ToJson();
  if (found != history->end()) {
    return absl::DataLossError(fmt::format("{}; kv shards undo --to KEPT takes another of kv shards history",
                                           std::string(UnreadableKeptMapError(found->name).message())));
  }
  return absl::NotFoundError(to.empty()
                                 ? std::string("no other map than the one in force is kept")
                                 : fmt::format("to: no map '{}' is kept: kv shards history lists them", to));
}

}  // namespace kvstore::shardops
