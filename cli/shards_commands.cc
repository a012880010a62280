#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <future>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/command.h"
#include "cli/fleet_commands.h"
#include "cli/move_commands.h"
#include "cli/operated.h"
#include "cli/operations_commands.h"
#include "cli/progress.h"
#include "coordination/zookeeper.h"
#include "kvstore_api/zookeeper_ledger.h"
#include "shardmap/diff.h"
#include "shardmap/mod_shard.h"
#include "shardmap/watcher.h"
#include "shardmap/weights.h"

/// kv shards: the shard map.
namespace kvstore::cli {
namespace {

/// Where the map is, and which of the two.
struct Place {
  ZooKeeperOptions zookeeper;
  std::string root;
  bool mod = false;

  void AddTo(CLI::App& command) {
    AddKind(command);
    AddServers(command);
  }
  void AddServers(CLI::App& command) {
    command.add_option("--zookeeper", zookeeper.servers, "Servers of ZooKeeper: host:port,host:port")
        ->envname("KV_ZOOKEEPER")
        ->type_name("SERVERS");
    command.add_option("--root", root, "Node below which all nodes are; /kvstore");
  }
  /// What is not said is as the configuration has it. Throws Failure.
  void Complete(const Globals& globals) {
    if (zookeeper.servers.empty() && !globals.config.empty()) {
      const OpenOptions options = globals.StoreOptions();
      if (options.mysql) {
        const std::string auth = std::exchange(zookeeper, options.mysql->zookeeper).auth;
        if (!auth.empty()) zookeeper.auth = auth;
        if (root.empty()) root = options.mysql->root;
      }
    }
    if (zookeeper.servers.empty()) {
      throw Failure{
          absl::InvalidArgumentError("zookeeper: say --zookeeper SERVERS, or --config with the fleet's")};
    }
    if (root.empty()) root = "/kvstore";
  }
  void AddAuth(CLI::App& command) {
    command
        .add_option("--auth", zookeeper.auth,
                    "user:password; a node that this makes can be written by this user only")
        ->envname("KV_ZOOKEEPER_AUTH");
  }
  void AddKind(CLI::App& command) { command.add_flag("--mod", mod, "The map of mod shards"); }
  std::string path() const { return root + (mod ? "/shards/mod" : "/shards/id"); }
};

/// The text of a file, "-" for standard input. Throws Failure.
std::string ReadText(const std::string& file) {
  if (file == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream in(file, std::ios::binary);
  if (!in) throw Failure{absl::NotFoundError(fmt::format("cannot open {}", file))};
  return {std::istreambuf_iterator<char>(in), {}};
}

ShardMap ReadMap(const std::string& text, bool mod) {
  ShardMap map = OrFail(ShardMap::Parse(text));
  if (mod) OrFail(ValidateModMap(map));
  return map;
}

Json HostsToJson(const std::optional<ShardRange>& range) {
  if (!range) return nullptr;
  return {{"master", range->master.ToString()}, {"slave", range->slave.ToString()}};
}

void PrintChanges(const std::vector<ShardChange>& changes, const Globals& globals) {
  if (globals.json) {
    Json list = Json::array();
    for (const ShardChange& change : changes) {
      list.push_back({{"range", {change.first, change.last}},
                      {"before", HostsToJson(change.before)},
                      {"after", HostsToJson(change.after)}});
    }
    PrintJson({{"ok", true}, {"changes", std::move(list)}});
    return;
  }
  for (const ShardChange& change : changes) fmt::print("{}\n", change.ToString());
  if (changes.empty()) fmt::print("no change\n");
}

void AddValidate(CLI::App& group, Globals& globals) {
  auto place = std::make_shared<Place>();
  auto file = std::make_shared<std::string>("-");
  CLI::App* validate = group.add_subcommand("validate", "Check a file without touching anything");
  validate->add_option("file", *file, "- or nothing: standard input");
  place->AddKind(*validate);
  validate->callback([place, file, &globals] {
    const ShardMap map = ReadMap(ReadText(*file), place->mod);
    if (globals.json) {
      PrintJson({{"ok", true}, {"entries", map.ranges().size()}, {"open_shards", map.open_shards()}});
    } else {
      fmt::print("a good map: {} entries, {} shards open\n", map.ranges().size(), map.open_shards());
    }
  });
}

void AddGet(CLI::App& group, Globals& globals) {
  auto place = std::make_shared<Place>();
  CLI::App* get = group.add_subcommand("get", "Print the map that is in ZooKeeper, as it is there");
  place->AddTo(*get);
  get->callback([place, &globals] {
    place->Complete(globals);
    ZooKeeper zookeeper(place->zookeeper, nullptr);
    const ZooKeeperNode node = OrFail(zookeeper.Get(place->path(), /*watch=*/false));
    fmt::print("{}{}", node.data, node.data.ends_with('\n') ? "" : "\n");
  });
}

void AddDiff(CLI::App& group, Globals& globals) {
  auto place = std::make_shared<Place>();
  auto file = std::make_shared<std::string>("-");
  CLI::App* diff = group.add_subcommand("diff", "Say what a file would change of the map in ZooKeeper");
  diff->add_option("file", *file, "- or nothing: standard input");
  place->AddTo(*diff);
  diff->callback([place, file, &globals] {
    place->Complete(globals);
    const ShardMap next = ReadMap(ReadText(*file), place->mod);
    ZooKeeper zookeeper(place->zookeeper, nullptr);
    const ZooKeeperNode node = OrFail(zookeeper.Get(place->path(), /*watch=*/false));
    PrintChanges(Diff(ReadMap(node.data, place->mod), next), globals);
  });
}

/// Asks on the terminal; false without one.
bool Confirm(const std::string& question) {
  if (::isatty(STDIN_FILENO) == 0) return false;
  fmt::print("{} [y/N] ", question);
  std::fflush(stdout);
  std::string answer;
  return std::getline(std::cin, answer) && (answer == "y" || answer == "yes");
}

/// An edit of the map in the ledger: shards that it opens or closes are its alone. Hosts may be edited at any
/// time: that may be an emergency.
Operation EditOf(bool mod, const std::vector<ShardChange>& changes) {
  Operation operation{.what = "set the shard map"};
  for (const ShardChange& change : changes) {
    if (change.before && change.after) continue;
    operation.claims.push_back(Claim::Shards(mod, change.first, change.last, ClaimMode::kExclusive));
  }
  return operation;
}

void AddSet(CLI::App& group, Globals& globals) {
  struct Arguments {
    Place place;
    std::string file = "-";
    bool yes = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* set =
      group.add_subcommand("set", "Put a file in force, if nobody else changes the map meanwhile");
  set->add_option("file", args->file, "- or nothing: standard input");
  set->add_flag("--yes", args->yes, "Do not ask");
  args->place.AddTo(*set);
  args->place.AddAuth(*set);
  set->callback([args, &globals] {
    Place& place = args->place;
    place.Complete(globals);
    const std::string text = ReadText(args->file);
    const ShardMap next = ReadMap(text, place.mod);
    ZooKeeper zookeeper(place.zookeeper, nullptr);
    const auto node = zookeeper.Get(place.path(), /*watch=*/false);
    if (absl::IsNotFound(node.status())) {
      if (!args->yes &&
          !Confirm(fmt::format("make {} with {} open shards?", place.path(), next.open_shards()))) {
        throw Failure{absl::FailedPreconditionError("nothing was written; say --yes to do it")};
      }
      OrFail(zookeeper.Create(place.path(), text));
      fmt::print("{} made\n", place.path());
      return;
    }
    OrFail(node.status());
    std::vector<ShardChange> changes;
    // A map that is damaged is replaced without a diff: nobody could use it.
    if (const auto current = ShardMap::Parse(node->data); current.ok()) {
      if (place.mod) OrFail(ValidateModUpdate(*current, next));
      changes = Diff(*current, next);
      PrintChanges(changes, globals);
    }
    if (!args->yes && !Confirm("put it in force?")) {
      throw Failure{absl::FailedPreconditionError("nothing was written; say --yes to do it")};
    }
    ZooKeeperLedger ledger(zookeeper, place.root);
    const Held held = OrFail(ledger.Begin(EditOf(place.mod, changes)));
    OrFail(ledger.Change(held, {{ZooKeeperStep::Kind::kSet, place.path(), text, node->version}}));
  });
}

void AddWatch(CLI::App& group, Globals& globals) {
  auto place = std::make_shared<Place>();
  CLI::App* watch = group.add_subcommand(
      "watch",
      "Print each change of the map that comes into force, until it is stopped. With mysql.operator in the "
      "configuration, hosts are looked at too: problems as they come and go, and for a master that is down "
      "the "
      "command that replaces it");
  place->AddTo(*watch);
  auto interval_s = std::make_shared<uint32_t>(5);
  watch->add_option("--interval", *interval_s, "Seconds between two looks at the hosts")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  watch->callback([place, interval_s, &globals] {
    place->Complete(globals);
    std::optional<ShardMap> before;
    const auto print = [&before, &globals](const ShardMap& map) {
      if (before) {
        PrintChanges(Diff(*before, map), globals);
      } else {
        fmt::print("{} entries, {} shards open\n", map.ranges().size(), map.open_shards());
      }
      std::fflush(stdout);
      before = map;
    };
    const auto watcher = OrFail(ShardMapWatcher::Start(OpenZooKeeperSource(place->zookeeper, place->path()),
                                                       {.mod = place->mod, .on_update = print}));
    if (HasOperator(globals)) WatchHosts(globals, std::chrono::seconds(*interval_s));
    std::promise<void>().get_future().wait();
  });
}

/// Writes a node, whether it is there or not.
absl::Status Put(ZooKeeper& zookeeper, const std::string& path, const absl::StatusOr<ZooKeeperNode>& before,
                 const std::string& text) {
  return before.ok() ? zookeeper.Set(path, text, before->version) : zookeeper.Create(path, text);
}

void PrintWeights(const ShardWeights& weights, const Globals& globals) {
  if (globals.json) {
    PrintJson({{"ok", true}, {"weights", Json::parse(ToJson(weights))}});
    return;
  }
  for (const ShardWeight& one : weights) fmt::print("{}-{}: {}\n", one.first, one.last, one.weight);
  fmt::print("all {}shards: 1\n", weights.empty() ? "" : "other ");
}

void AddWeight(CLI::App& group, Globals& globals) {
  struct Arguments {
    Place place;
    std::string range;
    std::optional<uint32_t> weight;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* weight = group.add_subcommand("weight",
                                          "How many new objects shards get, in proportion; 0: none, but "
                                          "those made near others that are there. Without a "
                                          "weight: what they are. All processes see it within seconds");
  weight->add_option("weight", args->weight)->check(CLI::Range(0U, ShardWeight::kMax));
  weight->add_option("--range", args->range, "First and last shard")->type_name("A-B");
  args->place.AddServers(*weight);
  args->place.AddAuth(*weight);
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
    if (range.first > range.last || range.last > ShardMap::kMaxShard) {
      throw Failure{absl::InvalidArgumentError(
          fmt::format("range: {} is not within 0-{}", args->range, ShardMap::kMaxShard))};
    }
    weights = With(weights, {range.first, range.last, *args->weight});
    OrFail(Put(zookeeper, path, node, ToJson(weights)));
    PrintWeights(weights, globals);
  });
}

void AddInit(CLI::App& group, Globals& globals) {
  CLI::App* init = group.add_subcommand(
      "init",
      "Make the databases of all open shards, and the tables of all datasets on them; what is there stays. "
      "Needs --config. Run it before the first dataset, and after shards were opened");
  init->callback([&globals] {
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
          &left_alone));
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (globals.json) {
      Json answer = {{"ok", true}, {"shards", shards}, {"seconds", seconds.count()}};
      if (!left_alone.empty()) answer["left_alone"] = left_alone;
      PrintJson(answer);
    } else {
      for (const auto& [why, count] : left_alone) fmt::print("left alone: {} {}\n", count, why);
      fmt::print("{} shards are there; {:.0f} a second\n", shards,
                 static_cast<double>(shards) / seconds.count());
    }
  });
}

}  // namespace

void AddShardsCommands(CLI::App& app, Globals& globals) {
  CLI::App* group = app.add_subcommand(
      "shards", "The shard maps, which say what MySQL hosts have which shards, and those hosts");
  group->require_subcommand(1);
  group->footer(R"(A map is JSON, ranges in order:
  [{"range": [0, 511], "master": "MySQL001A", "slave": "MySQL001B:3307"}, ...]

An edit:  kv shards get > map.json; edit it; kv shards set map.json      (KV_ZOOKEEPER or KV_CONFIG says where)");
  AddValidate(*group, globals);
  AddGet(*group, globals);
  AddDiff(*group, globals);
  AddSet(*group, globals);
  AddWatch(*group, globals);
  AddWeight(*group, globals);
  AddInit(*group, globals);
  AddFleetCommands(*group, globals);
  AddMoveCommands(*group, globals);
  AddOperationsCommands(*group, globals);
}

}  // namespace kvstore::cli
