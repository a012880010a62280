#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/fleet_commands.h"
#include "cli/map_commands.h"
#include "cli/map_place.h"
#include "cli/move_commands.h"
#include "cli/operations_commands.h"
#include "cli/shard_arguments.h"
#include "cli/shard_operator.h"
#include "cli/standard_output.h"
#include "shardmap/diff.h"
#include "shardmap/watcher.h"
#include "shardmap/weights.h"
#include "shardmap/zookeeper_source.h"

/// kv shards: the shard map.
namespace kvstore::cli {
namespace {

void AddValidate(CLI::App& group, Globals& globals) {
  auto place = std::make_shared<MapPlace>();
  auto file = std::make_shared<std::string>("-");
  CLI::App* validate = group.add_subcommand("validate", "Check a file without touching anything");
  validate->add_option("file", *file, "- or nothing: standard input");
  place->AddKind(*validate);
  validate->footer("Example: kv shards validate map.json");
  globals.without_server[validate] = "this command reads a file, and asks nobody";
  validate->callback([place, file, &globals] {
    const ShardMap map = ReadMap(ReadText(*file), place->space);
    if (globals.json) {
      PrintJson({{"ok", true}, {"entries", map.ranges().size()}, {"open_shards", map.open_shards()}});
    } else {
      Print("a good map: {} entries, {} shards open\n", map.ranges().size(), map.open_shards());
    }
  });
}

void AddGet(CLI::App& group, Globals& globals) {
  auto place = std::make_shared<MapPlace>();
  CLI::App* get =
      group.add_subcommand("get", "Print the map in ZooKeeper, in the form that kv shards set reads");
  place->AddTo(*get);
  get->footer(R"(Examples:
  kv shards get --zookeeper zk1:2181,zk2:2181,zk3:2181 > map.json
  kv --server kv1:7400 shards get > map.json      by an operator of that server)");
  get->callback([get, place, &globals] {
    const std::string map = GetMap(*OpenMaps(*get, *place, globals), *place);
    Print("{}{}", map, map.ends_with('\n') ? "" : "\n");
  });
}

void AddDiff(CLI::App& group, Globals& globals) {
  auto place = std::make_shared<MapPlace>();
  auto file = std::make_shared<std::string>("-");
  CLI::App* diff = group.add_subcommand("diff", "Show what a file would change in the map in ZooKeeper");
  diff->add_option("file", *file, "- or nothing: standard input");
  place->AddTo(*diff);
  diff->footer("Example: kv shards diff map.json");
  diff->callback([diff, place, file, &globals] {
    const auto maps = OpenMaps(*diff, *place, globals);
    const ShardMap next = ReadMap(ReadText(*file), place->space);
    PrintChanges(Diff(ReadMap(GetMap(*maps, *place), place->space), next), globals);
  });
}

void AddWatch(CLI::App& group, Globals& globals) {
  auto place = std::make_shared<MapPlace>();
  CLI::App* watch =
      group.add_subcommand("watch",
                           "Print each change of the map that comes into force, until it is stopped. With "
                           "mysql.operator in the configuration it also inspects the hosts: it prints "
                           "problems as they appear and disappear, each with the command that helps");
  place->AddTo(*watch);
  auto interval_s = std::make_shared<uint32_t>(5);
  watch->add_option("--interval", *interval_s, "Seconds between two inspections of the hosts")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  watch->footer("Example: kv --config /etc/kvstore/kv.json shards watch");
  globals.without_server[watch] =
      "this command watches the shard maps in ZooKeeper, and the MySQL servers, itself; name their "
      "configuration with --config FILE, or in KV_CONFIG, or, for the map alone, ZooKeeper with --zookeeper "
      "SERVERS, or in KV_ZOOKEEPER. Through a server, kv shards status shows the problems of the hosts";
  watch->callback([place, interval_s, &globals] {
    place->Complete(globals);
    std::optional<ShardMap> before;
    absl::Notification output_lost;
    std::once_flag lost_once;
    const auto lose = [&] { std::call_once(lost_once, [&] { output_lost.Notify(); }); };
    // The command ends when the reader of its output has gone, without waiting for the next change.
    const ReaderWatch reader(lose);
    // This runs on the watcher's thread, which an exception must not reach.
    const auto print = [&before, &lose, &globals](const ShardMap& map) {
      try {
        if (before) {
          PrintChanges(Diff(*before, map), globals);
        } else {
          Print("{} entries, {} shards open\n", map.ranges().size(), map.open_shards());
        }
        FlushOut();
      } catch (const OutputLost&) {
        lose();
      }
      before = map;
    };
    const auto watcher = OrFail(ShardMapWatcher::Start(OpenZooKeeperSource(place->zookeeper, place->path()),
                                                       {.space = place->space, .on_update = print}));
    if (HasOperator(globals)) WatchHosts(globals, std::chrono::seconds(*interval_s), output_lost);
    output_lost.WaitForNotification();
  });
}

void PrintWeights(const Json& weights) {
  for (const Json& one : weights) {
    Print("{}-{}: {}\n", one.at("range").at(0).get<uint32_t>(), one.at("range").at(1).get<uint32_t>(),
          one.at("weight").get<uint32_t>());
  }
  Print("all {}shards: 1\n", weights.empty() ? "" : "other ");
}

void AddWeight(CLI::App& group, Globals& globals) {
  struct Arguments {
    MapPlace place;
    std::string range;
    std::optional<uint32_t> weight;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* weight = group.add_subcommand(
      "weight",
      "Set how many new objects shards get, in proportion; 0: only those that are created near others there. "
      "Without a weight, print the weights. All processes see a change within seconds");
  weight
      ->add_option("weight", args->weight,
                   "The weight that the shards get; a shard that was given none has 1")
      ->check(CLI::Range(0U, ShardWeight::kMax));
  weight->add_option("--range", args->range, "First and last shard")->type_name("A-B");
  args->place.AddServers(*weight);
  args->place.AddAuth(*weight);
  weight->footer("Example: kv shards weight --range 3424-3431 0");
  weight->callback([args, weight, &globals] {
    Json command = {{"command", "weight"}};
    if (args->weight) {
      AddRangeTo(command, ParseRange(args->range, ShardSpace::kId));
      command["weight"] = uint64_t{*args->weight};
    }
    const Json answer = Operate(*OpenMapOperations(*weight, args->place, globals), command, globals);
    if (globals.json) {
      PrintAnswer(answer);
    } else {
      PrintWeights(answer.at("weights"));
    }
  });
}

void AddInit(CLI::App& group, Globals& globals) {
  CLI::App* init = group.add_subcommand(
      "init",
      "Make the databases of all open shards, and the tables of all datasets in them; whatever exists stays. "
      "Needs --config, or a server. Run it before the first dataset, and after shards were opened");
  auto ignore_empty = std::make_shared<bool>(false);
  init->add_flag("--ignore-empty", *ignore_empty,
                 "Make shards where the map has them although another host has empty databases of them, in "
                 "which no dataset has anything: for a map that is right");
  init->footer("Example: kv --config /etc/kvstore/kv.json shards init");
  init->callback([init, ignore_empty, &globals] {
    const auto begin = std::chrono::steady_clock::now();
    Json command = {{"command", "init"}};
    if (*ignore_empty) command["ignore_empty"] = true;
    Json answer = Operate(*OpenStoreOperations(*init, globals), command, globals);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (globals.json) {
      answer["seconds"] = seconds.count();
      PrintAnswer(std::move(answer));
      return;
    }
    if (answer.contains("left_alone")) {
      for (const auto& [why, count] : answer.at("left_alone").items())
        Print("left alone: {} {}\n", count.get<uint64_t>(), why);
    }
    const auto shards = answer.value("shards", uint64_t{0});
    Print("{} shards are there; {:.0f} a second\n", shards, static_cast<double>(shards) / seconds.count());
  });
}

}  // namespace

void AddShardsCommands(CLI::App& app, Globals& globals) {
  CLI::App* group = app.add_subcommand(
      "shards",
      "The shard maps, which say which MySQL hosts have which shards, and the operation of those hosts");
  group->require_subcommand(1);
  AddValidate(*group, globals);
  AddGet(*group, globals);
  AddDiff(*group, globals);
  AddMapCommands(*group, globals);
  AddWatch(*group, globals);
  AddWeight(*group, globals);
  AddInit(*group, globals);
  AddFleetCommands(*group, globals);
  AddMoveCommands(*group, globals);
  AddOperationsCommands(*group, globals);
  group->footer(R"(A map is JSON, ranges in order:
  [{"range": [0, 511], "master": "MySQL001A", "slave": "MySQL001B:3307"}, ...]

Example, an edit (KV_ZOOKEEPER or KV_CONFIG says where):
  kv shards get > map.json; edit it; kv shards set map.json

With --server ADDR, or KV_SERVER where neither of those is set, a server carries the commands out by the logins of its
own configuration (mysql.operator, mysql.replication); all but validate and watch. The caller needs the right "admin" on
all datasets ("*"). A command that loses its server, or is stopped, stops there, too, where nothing is left unusable.
Example:
  KV_TOKEN=... kv --server kv1:7400 shards promote MySQL001B --dry-run)");
}

}  // namespace kvstore::cli
