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
    command.add_flag("--unchecked", unchecked, "Even if the other map or the hosts contradict this map");
    place.AddTo(command);
    place.AddAuth(command);
  }
};

/// Throws Failure if the two maps would contradict each other, or the hosts contradict the map. The hosts are
/// inspected if the configuration has an operator's login.
void Check(const Edit& edit, const Globals& globals, ZooKeeper& zookeeper, const ShardMap& next) {
  if (edit.unchecked) return;
  const auto now = Maps::Load(zookeeper, edit.place.root);
  // A map that does not parse is repaired by this edit, or by the next one if it is the other map.
  if (!now.ok()) return;
  const bool look = HasOperator(globals);
  shardops::FleetOperator fleet{.zookeeper = zookeeper, .root = edit.place.root};
  if (look) fleet.access = (*Operated(globals)).access;
  const auto problems = shardops::FindMapProblems(fleet, *now, edit.place.mod, next, look);
  if (problems.empty()) return;
  throw Failure{absl::FailedPreconditionError(fmt::format(
      "{}\nnothing was written; if the map is right all the same: --unchecked", fmt::join(problems, "\n")))};
}

void Apply(const Edit& edit, const Globals& globals, ZooKeeper& zookeeper, const std::string& text) {
  const MapPlace& place = edit.place;
  const ShardMap next = ReadMap(text, place.mod);
  const auto node = zookeeper.Get(place.path(), /*watch=*/false);
  if (!node.ok() && !absl::IsNotFound(node.status())) throw Failure{node.status()};
  std::vector<ShardChange> changes;
  // A damaged map is replaced without a diff: nobody could use it.
  const auto current = node.ok() ? ShardMap::Parse(node->data) : absl::NotFoundError("none");
  if (current.ok()) {
    if (place.mod) OrFail(ValidateModUpdate(*current, next));
    changes = Diff(*current, next);
    PrintChanges(changes, globals);
  }
  Check(edit, globals, zookeeper, next);
  const std::string question =
      node.ok() ? std::string("put it in force?")
                : fmt::format("make {} with {} open shards?", place.path(), next.open_shards());
  if (!edit.yes && !Confirm(question)) {
    throw Failure{absl::FailedPreconditionError("nothing was written; say --yes to do it")};
  }
  if (!node.ok()) {
    OrFail(zookeeper.Create(place.path(), text));
    Print("{} made\n", place.path());
    return;
  }
  // An edit may be an emergency, so it must not fail because of the history.
  shardops::PrepareHistory(zookeeper, place.root).IgnoreError();
  ZooKeeperLedger ledger(zookeeper, place.root);
  const Held held = OrFail(ledger.Begin(EditOf(place.mod, changes)));
  OrFail(shardops::PutInForce(ledger, held, place.root,
                              {{ZooKeeperStep::Kind::kSet, place.path(), text, node->version}}));
}

void AddSet(CLI::App& group, Globals& globals) {
  auto edit = std::make_shared<Edit>();
  auto file = std::make_shared<std::string>("-");
  CLI::App* set =
      group.add_subcommand("set",
                           "Put a file in force as the map, if nobody else changes the map meanwhile. "
                           "Refused if a host would be in two pairs, or, with mysql.operator in the "
                           "configuration, if the hosts contradict the map. kv shards undo goes back");
  set->add_option("file", *file, "- or nothing: standard input");
  edit->AddTo(*set);
  set->footer("Example: kv shards get > map.json; edit it; kv shards set map.json");
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
  place->AddTo(*history);
  history->footer("Example: kv shards history --mod");
  history->callback([place, show, &globals] {
    place->Complete(globals);
    ZooKeeper zookeeper(place->zookeeper, nullptr);
    const std::vector<KeptMap> kept = OrFail(shardops::ReadHistory(zookeeper, place->root, place->mod));
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
                           "hand: undo what promote and move have changed by those commands");
  undo->add_option("--to", *to, "A name that kv shards history lists")->type_name("KEPT");
  edit->AddTo(*undo);
  undo->footer("Example: kv shards undo");
  undo->callback([edit, to, &globals] {
    edit->place.Complete(globals);
    ZooKeeper zookeeper(edit->place.zookeeper, nullptr);
    const MapPlace& place = edit->place;
    const ZooKeeperNode node = OrFail(zookeeper.Get(place.path(), /*watch=*/false));
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
