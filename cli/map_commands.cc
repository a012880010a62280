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

#include "cli/escape.h"
#include "cli/map_place.h"
#include "cli/shard_operator.h"
#include "cli/table.h"
#include "shardmap/diff.h"
#include "shardops/map_edit.h"
#include "shardops/map_history.h"

namespace kvstore::cli {
namespace {

using shardops::KeptMap;

/// Asks on the terminal; false without one.
bool Confirm(const std::string& question) {
  if (::isatty(STDIN_FILENO) == 0) return false;
  Print("{} [y/N] ", question);
  FlushOut();
  std::string answer;
  return std::getline(std::cin, answer) && (answer == "y" || answer == "yes");
}

/// The options of the commands that edit a map.
struct Edit {
  MapPlace place;
  bool yes = false;
  bool unchecked = false;
  bool dry_run = false;

  void AddTo(CLI::App& command) {
    command.add_flag("--yes", yes, "Do not ask");
    command.add_flag("--dry-run", dry_run, "Only check the map and the hosts, and say what would change");
    command.add_flag("--unchecked", unchecked,
                     "Ask no host, and compare no maps: puts in force a map that the other map or the hosts "
                     "contradict. Where a host does not have all that was written to its shards, clients "
                     "read old data or none, and write beside what is there. What kv shards move and promote "
                     "have changed, change back by these");
    place.AddTo(command);
    place.AddAuth(command);
  }
};

/// Says what was done, or would be.
void PrintDone(const Json& answer, const Edit& edit, const Globals& globals) {
  if (globals.json) {
    Json done = {{"changes", answer.at("changes")}, {"hosts_asked", answer.at("hosts_asked")}};
    if (answer.contains("made")) done["made"] = answer.at("made");
    PrintAnswer(std::move(done));
    return;
  }
  if (answer.contains("made")) {
    Print("{} {}\n", answer.value("made", ""), edit.dry_run ? "would be made" : "made");
  }
  if (!answer.value("hosts_asked", false) && answer.value("should_ask", false)) {
    Print(
        "no host was asked whether it has these shards: kv shards check compares the hosts with the maps\n");
  }
}

/// Edits the map: what would change is printed, and, without --yes, confirmed by the operator.
void Apply(const Edit& edit, const Globals& globals, ShardOperations& operations, Json command) {
  if (edit.place.space == ShardSpace::kMod) command["mod"] = true;
  if (edit.unchecked) command["unchecked"] = true;
  Report report = Report::kLines;
  if (edit.dry_run || !edit.yes) {
    Json dry_run = command;
    dry_run["dry_run"] = true;
    const Json plan = Operate(operations, dry_run, globals);
    if (edit.dry_run) return PrintDone(plan, edit, globals);
    const std::string question = plan.contains("made")
                                     ? fmt::format("make {} with {} open shards?", plan.value("made", ""),
                                                   plan.value("open_shards", uint64_t{0}))
                                     : std::string("put it in force?");
    if (!Confirm(question)) {
      throw Failure{absl::FailedPreconditionError("nothing was written; say --yes to do it")};
    }
    command["seen"] = plan.at("seen");
    report = Report::kNothing;
  }
  PrintDone(Operate(operations, command, globals, report), edit, globals);
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
  set->callback([edit, file, set, &globals] {
    const auto operations = OpenMapOperations(*set, edit->place, globals);
    std::string text = ReadText(*file);
    const ShardMap map = ReadMap(text, edit->place.space);
    // A server takes requests of 20 MiB at most.
    if (text.size() > ShardMap::kMaxPlainBytes) text = map.ToStored();
    Apply(*edit, globals, *operations, {{"command", "set"}, {"map", text}});
  });
}

/// Throws Failure if one of them cannot be read, but prints the others before.
void PrintHistory(const std::vector<KeptMap>& history, const Globals& globals) {
  const auto unreadable =
      std::find_if(history.begin(), history.end(), [](const KeptMap& kept) { return !kept.map; });
  const absl::Status status =
      unreadable == history.end() ? absl::OkStatus() : shardops::UnreadableKeptMapError(unreadable->name);
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
  history->callback([history, place, show, &globals] {
    std::vector<KeptMap> kept;
    for (auto& one : OrFail(OpenMaps(*history, *place, globals)->ListShardMaps(place->space))) {
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
    if (!found->map) throw Failure{shardops::UnreadableKeptMapError(found->name)};
    Print("{}\n", found->map->ToJson());
  });
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
  undo->callback([edit, to, undo, &globals] {
    Json command = {{"command", "undo"}};
    if (!to->empty()) command["to"] = *to;
    Apply(*edit, globals, *OpenMapOperations(*undo, edit->place, globals), std::move(command));
  });
}

}  // namespace

void AddMapCommands(CLI::App& group, Globals& globals) {
  AddSet(group, globals);
  AddHistory(group, globals);
  AddUndo(group, globals);
}

}  // namespace kvstore::cli
