#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/synchronization/notification.h"
#include "assembly/fleet_init.h"
#include "catalog/zookeeper_ledger.h"
#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/fleet_commands.h"
#include "cli/map_commands.h"
#include "cli/map_place.h"
#include "cli/move_commands.h"
#include "cli/operated.h"
#include "cli/operations_commands.h"
#include "cli/progress.h"
#include "cli/standard_output.h"
#include "coordination/zookeeper.h"
#include "shardmap/diff.h"
#include "shardmap/mod_shard.h"
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
  validate->callback([place, file, &globals] {
    const ShardMap map = ReadMap(ReadText(*file), place->mod);
    if (globals.json) {
      PrintJson({{"ok", true}, {"entries", map.ranges().size()}, {"open_shards", map.open_shards()}});
    } else {
      Print("a good map: {} entries, {} shards open\n", map.ranges().size(), map.open_shards());
    }
  });
}

void AddGet(CLI::App& group, Globals& globals) {
  auto place = std::make_shared<MapPlace>();
  CLI::App* get = group.add_subcommand("get", "Print the map in ZooKeeper, unchanged");
  AddMapSource(*get, *place, globals);
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
  AddMapSource(*diff, *place, globals);
  diff->footer("Example: kv shards diff map.json");
  diff->callback([diff, place, file, &globals] {
    const auto maps = OpenMaps(*diff, *place, globals);
    const ShardMap next = ReadMap(ReadText(*file), place->mod);
    PrintChanges(Diff(ReadMap(GetMap(*maps, *place), place->mod), next), globals);
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
                                                       {.mod = place->mod, .on_update = print}));
    if (HasOperator(globals)) WatchHosts(globals, std::chrono::seconds(*interval_s), output_lost);
    output_lost.WaitForNotification();
  });
}

/// Writes a node: creates it if it did not exist `before`.
absl::Status Put(ZooKeeper& zookeeper, const std::string& path, const absl::StatusOr<ZooKeeperNode>& before,
                 const std::string& text) {
  return before.ok() ? zookeeper.Set(path, text, before->version) : zookeeper.Create(path, text);
}

void PrintWeights(const ShardWeights& weights, const Globals& globals) {
  if (globals.json) {
    PrintJson({{"ok", true}, {"weights", Json::parse(ToJson(weights))}});
    return;
  }
  for (const ShardWeight& one : weights) Print("{}-{}: {}\n", one.first, one.last, one.weight);
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
  weight->add_option("weight", args->weight)->check(CLI::Range(0U, ShardWeight::kMax));
  weight->add_option("--range", args->range, "First and last shard")->type_name("A-B");
  args->place.AddServers(*weight);
  args->place.AddAuth(*weight);
  weight->footer("Example: kv shards weight --range 3424-3431 0");
  weight->callback([args, &globals] {
    args->place.Complete(globals);
    ZooKeeper zookeeper(args->place.zookeeper, nullptr);
    const std::string path = args->place.root + "/shards/weights";
    const auto node = zookeeper.Get(path, /*watch=*/false);
    if (!node.ok() && !absl::IsNotFound(node.status())) throw Failure{node.status()};
    ShardWeights weights;
    if (node.ok()) weights = OrFail(ParseWeights(node->data));
    if (!args->weight) {
      PrintWeights(weights, globals);
      return;
    }
    const shardops::MoveRange range = ParseRange(args->range, /*mod=*/false);
    weights = WithWeight(weights, {range.first, range.last, *args->weight});
    OrFail(Put(zookeeper, path, node, ToJson(weights)));
    PrintWeights(weights, globals);
  });
}

void AddInit(CLI::App& group, Globals& globals) {
  CLI::App* init = group.add_subcommand(
      "init",
      "Make the databases of all open shards, and the tables of all datasets in them; whatever exists stays. "
      "Needs --config. Run it before the first dataset, and after shards were opened");
  auto ignore_empty = std::make_shared<bool>(false);
  init->add_flag("--ignore-empty", *ignore_empty,
                 "Make shards where the map has them although another host has empty databases of them, in "
                 "which no dataset has anything: for a map that is right");
  init->footer("Example: kv --config /etc/kvstore/kv.json shards init");
  init->callback([ignore_empty, &globals] {
    const auto begin = std::chrono::steady_clock::now();
    uint64_t shards = 0;
    LeftAlone left_alone;
    {
      ProgressBar bar("init", "shards");
      OrFail(InitShards(
          globals.StoreOptions(),
          [&](uint64_t done, uint64_t total) {
            shards = total;
            bar.Show(done, total);
            return true;
          },
          &left_alone, *ignore_empty));
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (globals.json) {
      Json answer = {{"ok", true}, {"shards", shards}, {"seconds", seconds.count()}};
      if (!left_alone.empty()) answer["left_alone"] = left_alone;
      PrintJson(answer);
    } else {
      for (const auto& [why, count] : left_alone) Print("left alone: {} {}\n", count, why);
      Print("{} shards are there; {:.0f} a second\n", shards, static_cast<double>(shards) / seconds.count());
    }
  });
}

}  // namespace

void AddShardsCommands(CLI::App& app, Globals& globals) {
  CLI::App* group = app.add_subcommand(
      "shards",
      "The shard maps, which say which MySQL hosts have which shards, and the operation of those hosts");
  group->require_subcommand(1);
  globals.without_server[group] =
      "this command works on the shard maps in ZooKeeper and on the MySQL servers, not through a server of "
      "KVStore, as only kv shards get, diff and history do; name their configuration with --config FILE, or "
      "in KV_CONFIG, or, for a command on the map "
      "alone, ZooKeeper with --zookeeper SERVERS, or in KV_ZOOKEEPER";
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
  kv shards get > map.json; edit it; kv shards set map.json)");
}

}  // namespace kvstore::cli
