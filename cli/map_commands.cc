#include "cli/map_commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catalog/zookeeper_ledger.h"
#include "cli/escape.h"
#include "cli/fleet_commands.h"
#include "cli/map_place.h"
#include "cli/operated.h"
#include "cli/table.h"
#include "coordination/zookeeper.h"
#include "shardmap/diff.h"
#include "shardmap/mod_shard.h"
#include "shardops/map_check.h"
#include "shardops/map_history.h"
#include "shardops/maps.h"

namespace kvstore::cli {
namespace {

using shardops::KeptMap;
using shardops::Maps;

/// Asks on the terminal; false without one.
bool Confirm(const std::string& question) {
  if (::isatty(STDIN_FILENO) == 0) return false;
  Print("{} [y/N] ", question);
  FlushOut();
  std::string answer;
  return std::getline(std::cin, answer) && (answer == "y" || answer == "yes");
}

/// Returns an edit of the map as an operation of the ledger, with exclusive claims on the shards that it
/// opens or closes. Edits of hosts claim nothing, because they may be emergencies.
Operation EditOf(bool mod, const std::vector<ShardChange>& changes) {
  Operation operation{.what = "set the shard map"};
  for (const ShardChange& change : changes) {
    if (change.before && change.after) continue;
    operation.claims.push_back(Claim::Shards(mod, change.first, change.last, ClaimMode::kExclusive));
  }
  return operation;
}

/// The options of the commands that edit a map.
struct Edit {
  MapPlace place;
  bool yes = false;
  bool unchecked = false;

  void AddTo(CLI::App& command) {
    command.add_flag("--yes", yes, "Do not ask");
    command.add_flag("--unchecked", unchecked,
                     "Ask no host, and compare no maps: puts in force a map that the other map or the hosts "
                     "contradict. Where a host does not have all that was written to its shards, clients "
                     "read old data or none, and write beside what is there. What kv shards move and promote "
                     "have changed, change back by these");
    place.AddTo(command);
    place.AddAuth(command);
  }
};

/// What an edit replaces.
struct Replaced {
  absl::StatusOr<ZooKeeperNode> node = absl::NotFoundError("none");  ///< An error if there is no map yet.
  absl::StatusOr<ShardMap> map = absl::NotFoundError("none");        ///< An error also if it is damaged.
  std::vector<ShardChange> changes;  ///< None without `map`: what is damaged has no diff.

  /// Whether shards may get other hosts, so that the hosts must be asked.
  bool MayTakeShards() const { return node.ok() && (!map.ok() || !changes.empty()); }
};

/// Checks that the two maps would not contradict each other, nor the hosts the map. Returns whether the hosts
/// were asked. Throws Failure, also if they had to be asked and cannot be.
///
/// now  The maps in force; one that does not parse is left out. It is repaired by this edit, or by the next
/// one
///      if it is the other map.
bool Check(const Edit& edit, const Globals& globals, ZooKeeper& zookeeper, const Maps& now,
           const Replaced& replaced, const ShardMap& next) {
  if (edit.unchecked) return false;
  const bool can_ask = HasOperator(globals);
  if (!can_ask && replaced.MayTakeShards()) {
    throw Failure{absl::FailedPreconditionError(
        "no host was asked whether it has the shards of this map, since no operator's login was given; "
        "nothing was written. Run the command with --config and a configuration that has mysql.operator "
        "(docs/runbook.md). --unchecked puts the map in force without asking; the risk: where a host does "
        "not have all that was written to its shards, clients read old data or none, and write beside what "
        "is there")};
  }
  shardops::FleetOperator fleet{.zookeeper = zookeeper, .root = edit.place.root};
  auto ask = shardops::AskHosts::kNone;
  if (can_ask) {
    fleet.access = (*Operated(globals)).access;
    const bool damaged = replaced.node.ok() && !replaced.map.ok();
    ask = damaged ? shardops::AskHosts::kAll : shardops::AskHosts::kChanges;
  }
  const auto problems = shardops::FindMapProblems(fleet, now, edit.place.mod, next, ask);
  if (problems.empty()) return can_ask;
  throw Failure{
      absl::FailedPreconditionError(fmt::format("{}\nnothing was written", fmt::join(problems, "\n")))};
}

/// Says what was done.
///
/// asked  Whether the hosts were asked about the map.
void PrintDone(const MapPlace& place, const Replaced& replaced, bool asked, const Globals& globals) {
  if (globals.json) {
    Json json = {{"ok", true}, {"changes", ChangesToJson(replaced.changes)}, {"hosts_asked", asked}};
    if (!replaced.node.ok()) json["made"] = place.path();
    PrintJson(json);
    return;
  }
  if (!replaced.node.ok()) Print("{} made\n", place.path());
  const bool was_needed = !replaced.node.ok() || replaced.MayTakeShards();
  if (!asked && was_needed) {
    Print(
        "no host was asked whether it has these shards: kv shards check compares the hosts with the maps\n");
  }
}

void Apply(const Edit& edit, const Globals& globals, ZooKeeper& zookeeper, const std::string& text) {
  const MapPlace& place = edit.place;
  const ShardMap next = ReadMap(text, place.mod);
  Replaced replaced{.node = zookeeper.Get(place.path(), /*watch=*/false)};
  const auto& node = replaced.node;
  if (!node.ok() && !absl::IsNotFound(node.status())) throw Failure{node.status()};
  if (node.ok()) replaced.map = ShardMap::Parse(node->data);
  if (replaced.map.ok()) {
    if (place.mod) OrFail(ValidateModUpdate(*replaced.map, next));
    replaced.changes = Diff(*replaced.map, next);
    // JSON is one answer, at the end.
    if (!globals.json) PrintChanges(replaced.changes, globals);
  }
  const auto now = OrFail(Maps::LoadReadable(zookeeper, place.root));
  const bool asked = Check(edit, globals, zookeeper, now, replaced, next);
  const std::string question =
      node.ok() ? std::string("put it in force?")
                : fmt::format("make {} with {} open shards?", place.path(), next.open_shards());
  if (!edit.yes && !Confirm(question)) {
    throw Failure{absl::FailedPreconditionError("nothing was written; say --yes to do it")};
  }
  if (!node.ok()) {
    OrFail(shardops::CreateMap(zookeeper, place.root, place.mod, text));
    PrintDone(place, replaced, asked, globals);
    return;
  }
  // An edit may be an emergency, so it must not fail because of the history.
  shardops::PrepareHistory(zookeeper, place.root).IgnoreError();
  ZooKeeperLedger ledger(zookeeper, place.root);
  const Held held = OrFail(ledger.Begin(EditOf(place.mod, replaced.changes)));
  if (edit.unchecked) {
    OrFail(shardops::PutInForce(ledger, held, place.root,
                                {{ZooKeeperStep::Kind::kSet, place.path(), text, node->version}}));
  } else {
    // While the operator was asked, the other map may have changed, with which this one was compared.
    OrFail(now.SetText(ledger, held, place.mod, text, node->version));
  }
  PrintDone(place, replaced, asked, globals);
}

void AddSet(CLI::App& group, Globals& globals) {
  auto edit = std::make_shared<Edit>();
  auto file = std::make_shared<std::string>("-");
  CLI::App* set = group.add_subcommand(
      "set",
      "Put a file in force as the map, if nobody else changes the map meanwhile. "
      "Refused if a host would be in two pairs, or if the hosts contradict the map. To "
      "ask the hosts, a change needs mysql.operator in the configuration. kv shards undo "
      "goes back");
  set->add_option("file", *file, "- or nothing: standard input");
  edit->AddTo(*set);
  set->footer(
      R"(The first map is made without asking hosts.
With --json the answer has "changes", "hosts_asked", and, for a first map, its node as "made".

Example: kv shards get > map.json; edit it; kv shards set map.json)");
  set->callback([edit, file, &globals] {
    edit->place.Complete(globals);
    const std::string text = ReadText(*file);
    ReadMap(text, edit->place.mod);
    ZooKeeper zookeeper(edit->place.zookeeper, nullptr);
    Apply(*edit, globals, zookeeper, text);
  });
}

absl::Status UnreadableError(const KeptMap& kept) {
  return absl::DataLossError(
      fmt::format("the map kept as {} cannot be read: its node has something else", kept.name));
}

/// Throws Failure if one of them cannot be read, but prints the others before.
void PrintHistory(const std::vector<KeptMap>& history, const Globals& globals) {
  const auto unreadable =
      std::find_if(history.begin(), history.end(), [](const KeptMap& kept) { return !kept.map; });
  const absl::Status status = unreadable == history.end() ? absl::OkStatus() : UnreadableError(*unreadable);
  if (globals.json) {
    Json list = Json::array();
    for (const KeptMap& kept : history) {
      list.push_back({{"kept", kept.name},
                      {"at_ms", kept.at_ms},
                      {"who", kept.who},
                      {"map", kept.map ? Json::parse(kept.map->ToJson()) : Json()}});
    }
    PrintJson({{"ok", status.ok()}, {"maps", std::move(list)}});
    if (!status.ok()) throw Failure{status};
    return;
  }
  Table table({"KEPT", "SINCE", "WHO", "CHANGES"});
  for (size_t i = 0; i < history.size(); ++i) {
    const KeptMap& kept = history[i];
    std::vector<std::string> changes;
    if (!kept.map) {
      changes.emplace_back("cannot be read");
    } else if (i + 1 < history.size() && history[i + 1].map) {
      for (const ShardChange& change : Diff(*history[i + 1].map, *kept.map))
        changes.push_back(change.ToString());
    } else {
      changes.push_back(
          fmt::format("{} entries, {} shards open", kept.map->ranges().size(), kept.map->open_shards()));
    }
    table.Add({kept.name, UtcText(kept.at_ms), kept.who, fmt::format("{}", fmt::join(changes, "; "))});
  }
  table.Print();
  if (!status.ok()) throw Failure{status};
}

void AddHistory(CLI::App& group, Globals& globals) {
  auto place = std::make_shared<MapPlace>();
  auto show = std::make_shared<std::string>();
  CLI::App* history =
      group.add_subcommand("history", fmt::format("List the last {} maps that were in force, the newest "
                                                  "first: since when, who put them there, what they changed",
                                                  shardops::kKeptMaps));
  history->add_option("--show", *show, "Print one of them, in the form that kv shards set reads")
      ->type_name("KEPT");
  AddMapSource(*history, *place, globals);
  history->footer("Example: kv shards history --mod");
  history->callback([history, place, show, &globals] {
    std::vector<KeptMap> kept;
    for (auto& one : OrFail(OpenMaps(*history, *place, globals)->ListShardMaps(place->mod))) {
      kept.push_back({std::move(one.name), one.at_ms, std::move(one.who), std::nullopt});
      if (one.map) kept.back().map = OrFail(ShardMap::Parse(*one.map));
    }
    if (show->empty()) {
      PrintHistory(kept, globals);
      return;
    }
    const auto found =
        std::find_if(kept.begin(), kept.end(), [&](const KeptMap& one) { return one.name == *show; });
    if (found == kept.end()) {
      throw Failure{
          absl::NotFoundError(fmt::format("show: no map '{}' is kept: kv shards history lists them", *show))};
    }
    if (!found->map) throw Failure{UnreadableError(*found)};
    Print("{}\n", found->map->ToJson());
  });
}

/// Returns the map to go back to: the one named `to`, or the newest that is not in force. Throws Failure,
/// also if it cannot be read.
const ShardMap& Before(const std::vector<KeptMap>& history, const std::string& to,
                       const std::string& current) {
  const auto map = ShardMap::Parse(current);
  const auto found = std::find_if(history.begin(), history.end(), [&](const KeptMap& kept) {
    return to.empty() ? !map.ok() || kept.map != *map : kept.name == to;
  });
  if (found != history.end() && found->map) return *found->map;
  if (found != history.end()) {
    throw Failure{
        absl::DataLossError(fmt::format("{}; kv shards undo --to KEPT takes another of kv shards history",
                                        std::string(UnreadableError(*found).message())))};
  }
  throw Failure{absl::NotFoundError(
      to.empty() ? "no other map than the one in force is kept"
                 : fmt::format("to: no map '{}' is kept: kv shards history lists them", to))};
}

void AddUndo(CLI::App& group, Globals& globals) {
  auto edit = std::make_shared<Edit>();
  auto to = std::make_shared<std::string>();
  CLI::App* undo =
      group.add_subcommand("undo",
                           "Put the previous map in force again, or the one of kv shards history that --to "
                           "names; checked as by kv shards set. A second undo undoes the first. For edits by "
                           "hand: undo what promote and move have changed by those commands, which the "
                           "refusal names");
  undo->add_option("--to", *to, "A name that kv shards history lists")->type_name("KEPT");
  edit->AddTo(*undo);
  undo->footer("Example: kv shards undo");
  undo->callback([edit, to, &globals] {
    edit->place.Complete(globals);
    ZooKeeper zookeeper(edit->place.zookeeper, nullptr);
    const MapPlace& place = edit->place;
    const ZooKeeperNode node = GetMap(zookeeper, place);
    const auto history = OrFail(shardops::ReadHistory(zookeeper, place.root, place.mod));
    Apply(*edit, globals, zookeeper, Before(history, *to, node.data).ToJson());
  });
}

}  // namespace

void AddMapCommands(CLI::App& group, Globals& globals) {
  AddSet(group, globals);
  AddHistory(group, globals);
  AddUndo(group, globals);
}

}  // namespace kvstore::cli
