#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/amounts.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/table.h"
#include "json_api/answers.h"

/// kv object ..., kv mapping ...
namespace kvstore::cli {
namespace {

void PrintObject(const Object& object, bool json) {
  if (json) {
    Json answer = OrFail(json_api::ObjectToJson(object));
    answer["ok"] = true;
    answer["object_id"] = std::to_string(object.id);
    PrintJson(answer);
  } else {
    Print("{}\n", PrintableJson(object.data));
  }
}

void AddCreateObject(CLI::App& group, Globals& globals) {
  struct Arguments {
    std::string dataset, data;
    CreateOptions options;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* create = group.add_subcommand("create", "Store a JSON object and print its new ID");
  create->add_option("dataset", args->dataset, kDatasetHelp)->required();
  create->add_option("data", args->data, "A JSON object")->required();
  create->add_option("--near", args->options.near, "Create it on the shard of this ID")->type_name("ID");
  AtMost(create->add_option("--shard", args->options.shard, "Create it on this shard, 0 to 65535"), 65'535)
      ->excludes("--near");
  create->footer("Example: kv object create pins '{\"title\": \"a chair\"}' --near 241294492511762325");
  create->callback([args, &globals] {
    const uint64_t id =
        OrFail(globals.OpenStore(false)->CreateObject(args->dataset, args->data, args->options));
    if (globals.json) {
      PrintJson({{"ok", true}, {"object_id", std::to_string(id)}});
    } else {
      Print("{}\n", id);
    }
  });
}

void AddGetObject(CLI::App& group, Globals& globals) {
  struct Arguments {
    std::string dataset;
    std::vector<uint64_t> ids;
    ObjectReadOptions options;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* get = group.add_subcommand("get", "Print objects");
  get->add_option("dataset", args->dataset, kDatasetHelp)->required();
  get->add_option("id", args->ids, kObjectHelp)->required();
  get->add_flag("--include-inactive", args->options.include_inactive, "Also objects that were soft-deleted");
  get->footer("Example: kv object get pins 241294492511762325");
  get->callback([args, &globals] {
    const auto store = globals.OpenStore(false);
    absl::Status first_problem;
    for (const auto& object : OrFail(store->GetObjects(args->dataset, args->ids, args->options))) {
      if (object.ok()) PrintObject(*object, globals.json);
      if (first_problem.ok()) first_problem = object.status();
    }
    OrFail(first_problem);
  });
}

void AddUpdateObject(CLI::App& group, Globals& globals) {
  struct Arguments {
    std::string dataset, patch;
    uint64_t id = 0;
    UpdateOptions options;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* update = group.add_subcommand("update", "Change an object by a JSON merge patch (RFC 7396)");
  update->add_option("dataset", args->dataset, kDatasetHelp)->required();
  update->add_option("id", args->id, kObjectHelp)->required();
  update->add_option("patch", args->patch, "A JSON object; null removes a field")->required();
  TakeTime(update->add_option("--expected-timestamp", args->options.expected_timestamp,
                              "Only if the object was last changed at this time"));
  update->add_flag("--include-inactive", args->options.include_inactive,
                   "Also if the object was soft-deleted");
  update->footer(
      "Example: kv object update pins 241294492511762325 '{\"title\": \"a table\", \"note\": null}'");
  update->callback([args, &globals] {
    const auto store = globals.OpenStore(false);
    PrintObject(OrFail(store->PatchObject(args->dataset, args->id, args->patch, args->options)),
                globals.json);
  });
}

void AddDeleteObject(CLI::App& group, Globals& globals) {
  struct Arguments {
    std::string dataset;
    uint64_t id = 0;
    bool hard = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* command =
      group.add_subcommand("delete", "Hide an object (\"active\": false), or remove it for good");
  command->add_option("dataset", args->dataset, kDatasetHelp)->required();
  command->add_option("id", args->id, kObjectHelp)->required();
  command->add_flag("--hard", args->hard, "Remove it for good");
  command->footer("Example: kv object delete pins 241294492511762325 --hard");
  command->callback([args, &globals] {
    OrFail(globals.OpenStore(false)->DeleteObject(args->dataset, args->id, args->hard));
    if (globals.json) PrintJson({{"ok", true}});
  });
}

/// The arguments that the scans of objects and of mappings share.
struct ScanArguments {
  std::string dataset;
  IdRange range;
  uint32_t limit = 100;
  std::string marker;
  bool all = false;

  /// what  what is scanned: "objects".
  void AddTo(CLI::App& command, const std::string& what) {
    command.add_option("dataset", dataset, kDatasetHelp)->required();
    command.add_option("--start-id", range.start, "From this ID on")->type_name("ID");
    command.add_option("--end-id", range.end, "Before this ID")->type_name("ID");
    command.add_option("--limit", limit, "How many " + what)
        ->capture_default_str()
        ->check(CLI::Range(uint32_t{1}, std::numeric_limits<uint32_t>::max()));
    command.add_option("--marker", marker, "Continue where the scan with this marker ended")
        ->type_name("MARKER");
    command.add_flag("--all", all, "Read to the end");
  }

  /// Reads pages until there is no next one or `limit` was reached; returns the marker to continue with.
  ///
  /// read_page  takes the limit and the marker of a page, prints it, and returns the number of its entries
  ///            and the next marker.
  template <typename ReadPage>
  std::string Read(const ReadPage& read_page) const {
    std::string next = marker;
    uint64_t left = limit;
    do {
      const uint64_t wanted = all ? kMaxListEntries : std::min<uint64_t>(left, kMaxListEntries);
      left -= std::min<uint64_t>(left, read_page(static_cast<uint32_t>(wanted), next));
    } while (!next.empty() && (all || left > 0));
    return next;
  }
};

void AddScanObjects(CLI::App& group, Globals& globals) {
  struct Arguments : ScanArguments {
    bool include_inactive = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* scan = group.add_subcommand("scan", "Print the objects of a dataset in order of their IDs");
  args->AddTo(*scan, "objects");
  scan->add_flag("--include-inactive", args->include_inactive, "Also objects that were soft-deleted");
  scan->footer("Example: kv object scan pins --limit 10");
  scan->callback([args, &globals] {
    const auto store = globals.OpenStore(false);
    const WholeCommand limit(globals);
    const std::string marker = args->Read([&](uint32_t wanted, std::string& next) {
      const ObjectScanOptions options{
          .include_inactive = args->include_inactive, .limit = wanted, .marker = next};
      const ObjectPage page = OrFail(store->ScanObjects(args->dataset, args->range, options));
      for (const Object& object : page.objects) {
        if (globals.json) {
          Json one = OrFail(json_api::ObjectToJson(object));
          one["object_id"] = std::to_string(object.id);
          PrintJson(one);
        } else {
          Print("{} {}\n", object.id, PrintableJson(object.data));
        }
      }
      next = page.marker;
      return page.objects.size();
    });
    if (globals.json) {
      PrintJson({{"marker", json_api::MarkerToJson(marker)}});
    } else if (!marker.empty()) {
      Print("more: --marker {}\n", marker);
    }
  });
}

struct MappingArguments {
  std::string dataset;
  uint64_t from = 0;
  uint64_t to = 0;

  void AddTo(CLI::App& command, bool with_to) {
    command.add_option("dataset", dataset, kDatasetHelp)->required();
    command.add_option("from", from, "The ID that the entries belong to")->required();
    if (with_to) command.add_option("to", to, "The ID that the entry points to")->required();
  }
};

void AddAddMapping(CLI::App& group, Globals& globals) {
  struct Arguments : MappingArguments {
    std::optional<uint64_t> sequence;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* add = group.add_subcommand("add", "Add an entry, or move it to another place in the order");
  args->AddTo(*add, /*with_to=*/true);
  add->add_option("--sequence", args->sequence, "Its place in the order; default: the time in ms");
  add->footer("Example: kv mapping add board_has_pins 241294492511762301 241294492511762325");
  add->callback([args, &globals] {
    OrFail(globals.OpenStore(false)->AddMapping(args->dataset, args->from, args->to, args->sequence));
    if (globals.json) PrintJson({{"ok", true}});
  });
}

void AddRemoveMapping(CLI::App& group, Globals& globals) {
  auto args = std::make_shared<MappingArguments>();
  CLI::App* remove = group.add_subcommand("remove", "Remove an entry");
  args->AddTo(*remove, /*with_to=*/true);
  remove->footer("Example: kv mapping remove board_has_pins 241294492511762301 241294492511762325");
  remove->callback([args, &globals] {
    const bool removed = OrFail(globals.OpenStore(false)->RemoveMapping(args->dataset, args->from, args->to));
    if (globals.json) {
      PrintJson({{"ok", true}, {"removed", removed}});
    } else {
      Print("{}\n", removed ? "removed" : "there was none");
    }
  });
}

void AddCountMapping(CLI::App& group, Globals& globals) {
  auto args = std::make_shared<MappingArguments>();
  CLI::App* count = group.add_subcommand("count", "Count the entries of an ID");
  args->AddTo(*count, /*with_to=*/false);
  count->footer("Example: kv mapping count board_has_pins 241294492511762301");
  count->callback([args, &globals] {
    const uint64_t entries = OrFail(globals.OpenStore(false)->CountMapping(args->dataset, args->from));
    if (globals.json) {
      PrintJson({{"ok", true}, {"count", entries}});
    } else {
      Print("{}\n", entries);
    }
  });
}

void PrintPage(const MappingPage& page, bool json) {
  if (json) {
    Json answer = json_api::MappingToJson(page);
    answer["ok"] = true;
    PrintJson(answer);
    return;
  }
  Table table({"SEQUENCE", "TO"});
  for (const MappingEntry& entry : page.entries) {
    table.Add({std::to_string(entry.sequence), std::to_string(entry.to)});
  }
  table.Print();
  if (!page.marker.empty()) Print("more: --marker {}\n", page.marker);
}

void PrintJoined(const JoinedPage& page, bool json) {
  Table table({"SEQUENCE", "TO", "OBJECT"});
  Json objects = Json::array();
  for (const JoinedObject& joined : page.objects) {
    const std::string to = std::to_string(joined.entry.to);
    if (json) {
      Json one = joined.object.ok() ? OrFail(json_api::ObjectToJson(*joined.object))
                                    : json_api::ErrorToJson(joined.object.status());
      one["to"] = to;
      one["sequence"] = joined.entry.sequence;
      objects.push_back(std::move(one));
    } else {
      table.Add({std::to_string(joined.entry.sequence), to,
                 joined.object.ok() ? PrintableJson(joined.object->data)
                                    : std::string(joined.object.status().message())});
    }
  }
  if (json) {
    PrintJson(
        {{"ok", true}, {"objects", std::move(objects)}, {"marker", json_api::MarkerToJson(page.marker)}});
    return;
  }
  table.Print();
  if (!page.marker.empty()) Print("more: --marker {}\n", page.marker);
}

void AddListMapping(CLI::App& group, Globals& globals) {
  struct Arguments : MappingArguments {
    MappingListOptions options;
    bool descending = false;
    bool objects = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* list = group.add_subcommand("list", "List the entries of an ID by sequence");
  args->AddTo(*list, /*with_to=*/false);
  list->add_flag("--desc", args->descending, "Greatest sequence first");
  list->add_option("--limit", args->options.limit, "Entries in a page")
      ->check(CLI::Range(uint32_t{1}, std::numeric_limits<uint32_t>::max()))
      ->capture_default_str();
  list->add_option("--offset", args->options.offset,
                   "Entries to skip; page by marker instead where there are many");
  list->add_option("--marker", args->options.marker, "Continue where the page with this marker ended")
      ->type_name("MARKER");
  list->add_flag("--objects", args->objects, "Show the objects that the entries point to");
  list->footer("Example: kv mapping list board_has_pins 241294492511762301 --objects");
  list->callback([args, &globals] {
    if (args->descending) args->options.order = MappingListOptions::Order::kDescending;
    const auto store = globals.OpenStore(false);
    if (args->objects) {
      PrintJoined(OrFail(store->ListObjects(args->dataset, args->from, args->options)), globals.json);
    } else {
      PrintPage(OrFail(store->ListMapping(args->dataset, args->from, args->options)), globals.json);
    }
  });
}

void AddScanMappings(CLI::App& group, Globals& globals) {
  auto args = std::make_shared<ScanArguments>();
  CLI::App* scan = group.add_subcommand("scan", "Print the entries of all IDs in order of FROM and TO");
  args->AddTo(*scan, "entries");
  scan->footer("Example: kv mapping scan board_has_pins --limit 10");
  scan->callback([args, &globals] {
    const auto store = globals.OpenStore(false);
    const WholeCommand limit(globals);
    Table table({"FROM", "TO", "SEQUENCE"});
    const std::string marker = args->Read([&](uint32_t wanted, std::string& next) {
      const MappingScanOptions options{.limit = wanted, .marker = next};
      const ScannedMappingPage page = OrFail(store->ScanMappings(args->dataset, args->range, options));
      for (const ScannedMapping& entry : page.entries) {
        if (globals.json) {
          PrintJson({{"from", std::to_string(entry.from)},
                     {"to", std::to_string(entry.to)},
                     {"sequence", entry.sequence}});
        } else {
          table.Add({std::to_string(entry.from), std::to_string(entry.to), std::to_string(entry.sequence)});
        }
      }
      next = page.marker;
      return page.entries.size();
    });
    if (globals.json) {
      PrintJson({{"marker", json_api::MarkerToJson(marker)}});
      return;
    }
    table.Print();
    if (!marker.empty()) Print("more: --marker {}\n", marker);
  });
}

CLI::App* AddGroup(CLI::App& app, const std::string& name, const std::string& description) {
  CLI::App* group = app.add_subcommand(name, description);
  group->require_subcommand(1);
  return group;
}

}  // namespace

void AddObjectCommands(CLI::App& app, Globals& globals) {
  CLI::App* group = AddGroup(app, "object", "Create, read, change, delete and scan JSON objects");
  AddCreateObject(*group, globals);
  AddGetObject(*group, globals);
  AddUpdateObject(*group, globals);
  AddDeleteObject(*group, globals);
  AddScanObjects(*group, globals);
  group->footer("Example: kv object create pins '{\"title\": \"a chair\"}'");
}

void AddMappingCommands(CLI::App& app, Globals& globals) {
  CLI::App* group = AddGroup(app, "mapping", "Add, remove, list, count and scan entries of mappings");
  AddAddMapping(*group, globals);
  AddRemoveMapping(*group, globals);
  AddListMapping(*group, globals);
  AddCountMapping(*group, globals);
  AddScanMappings(*group, globals);
  group->footer("Example: kv mapping list board_has_pins 241294492511762301");
}

}  // namespace kvstore::cli
