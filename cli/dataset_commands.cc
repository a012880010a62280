#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "assembly/backend_config.h"
#include "cli/amounts.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "json/dataset_json.h"

/// kv dataset ..., kv compact.
namespace kvstore::cli {
namespace {

std::string Versions(const DatasetSpec& spec) {
  return spec.max_versions == 0 ? "all" : std::to_string(spec.max_versions);
}

std::string TimeToLive(const DatasetSpec& spec) {
  return spec.ttl_ms == 0 ? "never" : fmt::format("{} ms", spec.ttl_ms);
}

/// The settings that create and alter share.
struct Settings {
  std::optional<uint32_t> max_versions;
  std::optional<uint64_t> ttl_ms;
  std::string durability;
  std::optional<uint64_t> keep_changes_ms;

  /// creates  Whether a setting that is left out has its default; else it stays as it is.
  void AddTo(CLI::App& command, bool creates) {
    const auto with_default = [creates](const std::string& text, const char* value) {
      return creates ? fmt::format("{}; {} by default", text, value) : text;
    };
    AtMost(command.add_option("--max-versions", max_versions,
                              with_default("Newest cells of a column that are kept; 0: all", "1")),
           std::numeric_limits<uint32_t>::max());
    TakeDuration(
        command.add_option("--ttl-ms", ttl_ms, with_default("Age at which cells expire; 0: never", "0")));
    command
        .add_option("--durability", durability,
                    with_default(
                        "What an acknowledged write survives: the death of the process, or also a power loss",
                        "process"))
        ->check(OneOf({"process", "machine"}));
    TakeDuration(command.add_option(
        "--keep-changes-ms", keep_changes_ms,
        with_default("How long changes are kept for kv changes; 0: they are not recorded. On MySQL: any "
                     "value lets the "
                     "dataset be followed, and the servers say how long they keep binary logs",
                     "0")));
  }
  DatasetChange ToChange() const {
    return {max_versions, ttl_ms, ParseDurability(durability), keep_changes_ms};
  }
};

void AddCreate(CLI::App& group, Globals& globals) {
  struct Arguments {
    std::string name, shape = "rows", backend, compression = "lz4", engine;
    uint32_t type = 0;
    uint64_t blob_threshold = 0;
    Settings settings;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* create =
      group.add_subcommand("create", "Create an empty dataset, and the store if there is none");
  create->add_option("name", args->name, "Letters, digits, '_', '-', '.'; at most 48")->required();
  create->add_option("--shape", args->shape, "What it holds")
      ->check(OneOf({"rows", "objects", "mappings"}))
      ->capture_default_str();
  create->add_option(
      "--backend", args->backend,
      "Where it is stored: rocksdb or mysql; the default is that of the configuration, else rocksdb");
  create
      ->add_option("--type", args->type,
                   "Objects: the type number in their IDs; the default is the lowest free one")
      ->check(CLI::Range(1, 1023));
  args->settings.AddTo(*create, /*creates=*/true);
  create->add_option("--compression", args->compression, "Compression of its files")
      ->check(OneOf({"none", "lz4", "zstd"}))
      ->capture_default_str();
  create
      ->add_option("--blob-threshold", args->blob_threshold,
                   "Keep values of at least this size apart from the keys; 0: none")
      ->type_name("BYTES")
      ->capture_default_str();
  create->add_option("--engine", args->engine, "Backend mysql: the servers' storage engine")
      ->check(OneOf({"innodb", "myrocks"}));
  create->footer("Example: kv dataset create events --max-versions 50 --ttl-ms 30d");
  create->callback([args, &globals] {
    DatasetSpec spec{.name = args->name,
                     .shape = *ParseShape(args->shape),
                     .backend = args->backend,
                     .type = args->type,
                     .compression = *ParseCompression(args->compression),
                     .blob_threshold = args->blob_threshold,
                     .engine = args->engine};
    OrFail(globals.OpenStore(true)->CreateDataset(Apply(spec, args->settings.ToChange())));
    PrintDone(globals, fmt::format("created {}", args->name));
  });
}

void AddAlter(CLI::App& group, Globals& globals) {
  struct Arguments {
    std::string name;
    Settings settings;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* alter =
      group.add_subcommand("alter",
                           "Change settings, with immediate effect: lowering --max-versions or --ttl-ms "
                           "hides old cells at once, and they "
                           "are removed within a day; raising one shows again what is not removed yet");
  alter->add_option("name", args->name, kDatasetHelp)->required();
  args->settings.AddTo(*alter, /*creates=*/false);
  alter->footer("Example: kv dataset alter events --max-versions 10 --ttl-ms 30d");
  alter->callback([args, &globals] {
    OrFail(globals.OpenStore(false)->AlterDataset(args->name, args->settings.ToChange()));
    PrintDone(globals, fmt::format("altered {}", args->name));
  });
}

void AddDrop(CLI::App& group, Globals& globals) {
  struct Arguments {
    std::string name;
    bool yes = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* drop = group.add_subcommand("drop", "Remove a dataset with all of its data, for good");
  drop->add_option("name", args->name, kDatasetHelp)->required();
  drop->add_flag("--yes", args->yes, "Do it; without this nothing is removed");
  drop->footer("Example: kv dataset drop events --yes");
  drop->callback([args, &globals] {
    const auto store = globals.OpenStore(false);
    const auto stats = OrFail(store->GetStats(args->name));
    if (!args->yes) {
      throw Failure{absl::FailedPreconditionError(fmt::format(
          "this would remove {} with about {} entries for good; nothing was removed; say --yes to do it",
          args->name, stats.approximate_entries))};
    }
    OrFail(store->DropDataset(args->name, {}));
    PrintDone(globals, fmt::format("dropped {}", args->name));
  });
}

/// Whether nothing is known of a listed dataset but its name, because the catalog's entry of it is damaged.
bool IsUnreadable(const DatasetSpec& spec) { return spec.backend.empty(); }

void AddList(CLI::App& group, Globals& globals) {
  CLI::App* list = group.add_subcommand("list", "List the datasets and their settings");
  list->footer(
      R"(Example: kv dataset list

Exit codes: 0 done; 1 failed, or the catalog's entry of a dataset cannot be read; 2 wrong usage.)");
  list->callback([&globals] {
    const auto specs = OrFail(globals.OpenStore(false)->ListDatasets());
    std::vector<std::string> unreadable;
    for (const DatasetSpec& spec : specs) {
      if (IsUnreadable(spec)) unreadable.push_back(spec.name);
    }
    if (globals.json) {
      Json datasets = Json::array();
      for (const DatasetSpec& spec : specs) {
        datasets.push_back(IsUnreadable(spec) ? Json{{"dataset", spec.name}, {"state", "unreadable"}}
                                              : DatasetToJson(spec));
      }
      PrintJson({{"ok", unreadable.empty()}, {"datasets", std::move(datasets)}});
    } else {
      Table table({"DATASET", "SHAPE", "BACKEND", "VERSIONS", "EXPIRES AFTER", "DURABILITY"});
      for (const DatasetSpec& spec : specs) {
        if (IsUnreadable(spec)) {
          table.Add({spec.name, "unreadable", "", "", "", ""});
          continue;
        }
        table.Add({spec.name, std::string(Name(spec.shape)), spec.backend, Versions(spec), TimeToLive(spec),
                   std::string(Name(spec.durability))});
      }
      table.Print();
    }
    if (unreadable.empty()) return;
    throw Failure{absl::DataLossError(fmt::format(
        "the catalog's entries of these datasets cannot be read: {}; the others are listed, and not "
        "affected: docs/runbook.md, 'The entry of a dataset cannot be read'",
        fmt::join(unreadable, ", ")))};
  });
}

void AddShow(CLI::App& group, Globals& globals) {
  auto name = std::make_shared<std::string>();
  CLI::App* show = group.add_subcommand("show", "Show settings and size of a dataset");
  show->add_option("name", *name, kDatasetHelp)->required();
  show->footer("Example: kv dataset show events");
  show->callback([name, &globals] {
    const auto store = globals.OpenStore(false);
    const DatasetSpec spec = OrFail(store->GetDataset(*name));
    const DatasetStats stats = OrFail(store->GetStats(*name));
    if (globals.json) {
      Json answer = DatasetToJson(spec);
      answer["ok"] = true;
      answer["approximate_bytes"] = stats.approximate_bytes;
      answer["approximate_entries"] = stats.approximate_entries;
      PrintJson(answer);
      return;
    }
    Table table({"SETTING", "VALUE"});
    table.Add({"dataset", spec.name});
    table.Add({"shape", std::string(Name(spec.shape))});
    table.Add({"backend", spec.backend});
    if (!spec.table.empty()) table.Add({"table", spec.table});
    if (spec.shape == Shape::kObjects) table.Add({"type", std::to_string(spec.type)});
    if (spec.shape == Shape::kRows) {
      table.Add({"versions kept", Versions(spec)});
      table.Add({"cells expire after", TimeToLive(spec)});
    }
    table.Add({"durability", std::string(Name(spec.durability))});
    if (spec.keep_changes_ms != 0) {
      table.Add({"changes are kept", fmt::format("{} ms", spec.keep_changes_ms)});
    }
    table.Add({"compression", std::string(Name(spec.compression))});
    table.Add(
        {"blob threshold", spec.blob_threshold == 0 ? "none" : fmt::format("{} bytes", spec.blob_threshold)});
    table.Add({"bytes, about", std::to_string(stats.approximate_bytes)});
    table.Add({"entries, about", std::to_string(stats.approximate_entries)});
    table.Print();
  });
}

void Reclaim(KVStore& store, const std::string& name, const std::string& action, const Globals& globals) {
  const WholeCommand limit(globals);
  ReclaimResult result;
  {
    ProgressBar bar(action + " " + name, "bytes");
    result = OrFail(store.Compact(name, [&](uint64_t done, uint64_t total) {
      bar.Show(done, total);
      return true;
    }));
  }
  if (globals.json) {
    PrintJson({{"ok", true},
               {"bytes_before", result.bytes_before},
               {"bytes_after", result.bytes_after},
               {"expired_cells", result.expired_cells},
               {"surplus_cells", result.surplus_cells}});
    return;
  }
  Print("{} bytes before, {} after; {} expired and {} surplus cells removed\n", result.bytes_before,
        result.bytes_after, result.expired_cells, result.surplus_cells);
}

void AddCompact(CLI::App& app, Globals& globals) {
  auto name = std::make_shared<std::string>();
  CLI::App* compact = app.add_subcommand(
      "compact", "Remove expired and surplus cells from disk now; no read changes its answer");
  compact->add_option("dataset", *name, kDatasetHelp)->required();
  compact->footer("Example: kv compact events");
  compact->callback([name, &globals] { Reclaim(*globals.OpenStore(false), *name, "compact", globals); });
}

void AddPurge(CLI::App& app, Globals& globals) {
  struct Arguments {
    std::string name;
    std::optional<uint64_t> cells_per_s;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* purge = app.add_subcommand("purge",
                                       "Do what compact does on MySQL servers: in small transactions, on "
                                       "hosts in parallel, no faster than allowed");
  purge->add_option("dataset", args->name, kDatasetHelp)->required();
  purge->add_option("--cells-per-second", args->cells_per_s,
                    "Cells to read per second on each host; 0: no limit; the default is the configuration's");
  purge->footer("Example: kv --config /etc/kvstore/kv.json purge events --cells-per-second 100000");
  purge->callback([args, &globals] {
    if (!globals.server.empty()) {
      if (args->cells_per_s) {
        WrongUsage("--cells-per-second: not with --server, whose configuration has purge_cells_per_s");
      }
      return Reclaim(*globals.OpenStore(false), args->name, "purge", globals);
    }
    OpenOptions options = globals.StoreOptions();
    options.create_if_missing = false;
    MySqlFleetOptions* fleet = FindFleet(options);
    if (fleet != nullptr && args->cells_per_s) fleet->options.purge_cells_per_s = *args->cells_per_s;
    Reclaim(*OrFail(Open(options)), args->name, "purge", globals);
  });
}

}  // namespace

void AddDatasetCommands(CLI::App& app, Globals& globals) {
  CLI::App* group = app.add_subcommand("dataset", "Create, list, show, alter and drop datasets");
  group->require_subcommand(1);
  group->fallthrough();
  AddCreate(*group, globals);
  AddList(*group, globals);
  AddShow(*group, globals);
  AddAlter(*group, globals);
  AddDrop(*group, globals);
  group->footer("Example: kv dataset create events --max-versions 50");
  AddCompact(app, globals);
  AddPurge(app, globals);
}

}  // namespace kvstore::cli
