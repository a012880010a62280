#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <future>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/fleet_commands.h"
#include "cli/progress.h"
#include "coordination/zookeeper.h"
#include "shardmap/diff.h"
#include "shardmap/mod_shard.h"
#include "shardmap/watcher.h"

/// kv shards: the shard map.
namespace kvstore::cli {
namespace {

/// Where the map is, and which of the two.
struct Place {
  ZooKeeperOptions zookeeper;
  std::string root = "/kvstore";
  bool mod = false;

  void AddTo(CLI::App& command) {
    AddKind(command);
    command.add_option("--zookeeper", zookeeper.servers, "Servers of ZooKeeper: host:port,host:port")
        ->envname("KV_ZOOKEEPER")
        ->required()
        ->type_name("SERVERS");
    command.add_option("--root", root, "Node below which all nodes are")->capture_default_str();
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

void AddGet(CLI::App& group) {
  auto place = std::make_shared<Place>();
  CLI::App* get = group.add_subcommand("get", "Print the map that is in ZooKeeper, as it is there");
  place->AddTo(*get);
  get->callback([place] {
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
    const Place& place = args->place;
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
    // A map that is damaged is replaced without a diff: nobody could use it.
    if (const auto current = ShardMap::Parse(node->data); current.ok()) {
      if (place.mod) OrFail(ValidateModUpdate(*current, next));
      PrintChanges(Diff(*current, next), globals);
    }
    if (!args->yes && !Confirm("put it in force?")) {
      throw Failure{absl::FailedPreconditionError("nothing was written; say --yes to do it")};
    }
    OrFail(zookeeper.Set(place.path(), text, node->version));
  });
}

void AddWatch(CLI::App& group, Globals& globals) {
  auto place = std::make_shared<Place>();
  CLI::App* watch =
      group.add_subcommand("watch", "Print each change that comes into force, until it is stopped");
  place->AddTo(*watch);
  watch->callback([place, &globals] {
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
    std::promise<void>().get_future().wait();
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
    {
      ProgressBar bar("init", "shards");
      OrFail(InitShards(globals.StoreOptions(), [&](uint64_t done, uint64_t total) {
        shards = total;
        bar.Show(done, total);
        return true;
      }));
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (globals.json) {
      PrintJson({{"ok", true}, {"shards", shards}, {"seconds", seconds.count()}});
    } else {
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

An edit:  kv shards get --zookeeper zk1:2181 > map.json; edit it; kv shards set map.json --zookeeper zk1:2181)");
  AddValidate(*group, globals);
  AddGet(*group);
  AddDiff(*group, globals);
  AddSet(*group, globals);
  AddWatch(*group, globals);
  AddInit(*group, globals);
  AddFleetCommands(*group, globals);
}

}  // namespace kvstore::cli
