#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/clock.h"
#include "cli/amounts.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/table.h"
#include "json_api/answers.h"
#include "kvstore_api/limits.h"

/// kv put, get, delete, scan: rows.
namespace kvstore::cli {
namespace {

/// Splits "name=value" at the first '='. Throws as WrongUsage.
///
/// option  The option whose value it is; empty: none.
std::pair<std::string, std::string> SplitAssignment(const std::string& argument,
                                                    std::string_view option = "") {
  const size_t equals = argument.find('=');
  if (equals == std::string::npos) {
    WrongUsage(fmt::format("{}{}'{}': must be COLUMN=VALUE", option, option.empty() ? "" : ": ", argument));
  }
  return {argument.substr(0, equals), argument.substr(equals + 1)};
}

/// Options that get and scan share.
struct Choice {
  std::vector<std::string> columns;
  uint32_t versions = 1;
  TimeRange range;
  std::string marker;

  void AddTo(CLI::App& command) {
    command.add_option("--versions", versions, "How many cells of each column, newest first")
        ->check(CLI::Range(uint32_t{1}, std::numeric_limits<uint32_t>::max()))
        ->capture_default_str();
    TakeTime(command.add_option("--start-timestamp", range.start, "Only cells from this time on"));
    TakeTime(command.add_option("--end-timestamp", range.end, "Only cells before this time"));
    command.add_option("--marker", marker, "Continue where the page with this marker ended")
        ->type_name("MARKER");
  }
};

void AddItems(Table& table, std::span<const Item> items, const std::vector<std::string>& before) {
  for (const Item& item : items) {
    for (const Cell& cell : item.cells) {
      std::vector<std::string> row = before;
      row.insert(row.end(), {Escape(item.column), std::to_string(cell.timestamp), Escape(cell.value)});
      table.Add(std::move(row));
    }
  }
}

void PrintMarker(std::string_view marker) {
  if (!marker.empty()) Print("more: --marker {}\n", marker);
}

/// Says so if cells with this timestamp are too old to be read.
void TellOfExpired(KVStore& store, const std::string& dataset, uint64_t timestamp) {
  const auto spec = store.GetDataset(dataset);
  if (!spec.ok() || spec->ttl_ms == 0) return;
  if (const uint64_t now = WallClockMs(); now < spec->ttl_ms || timestamp >= now - spec->ttl_ms) return;
  PrintErr("written, and no read shows it: the timestamp is older than the time to live of {}, {} ms\n",
           dataset, spec->ttl_ms);
}

void AddPut(CLI::App& app, Globals& globals) {
  struct Arguments {
    std::string dataset, row, if_absent, if_equals;
    std::vector<std::string> assignments;
    std::optional<uint64_t> timestamp;
    bool sync = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* put = app.add_subcommand("put", "Write columns of a row, all or none");
  put->add_option("dataset", args->dataset, kDatasetHelp)->required();
  put->add_option("row", args->row, kRowHelp)->required();
  put->add_option("columns", args->assignments, "COLUMN=VALUE, divided at the first '='")->required();
  TakeTime(put->add_option("--timestamp", args->timestamp,
                           "Timestamp of the cells; without it the store assigns one"));
  put->add_option("--if-absent", args->if_absent, "Only if this column has no value")->type_name("COLUMN");
  put->add_option("--if-equals", args->if_equals, "Only if the newest value of this column is this one")
      ->type_name("COLUMN=VALUE")
      ->excludes("--if-absent");
  put->add_flag("--sync", args->sync, "Wait until the write is on stable storage");
  put->footer("Example: kv put events user:7 click=pin:3 view=pin:9 --timestamp 1700000000000");
  put->callback([put, args, &globals] {
    const auto assignments = globals.Bytes(args->assignments);
    std::vector<std::pair<std::string, std::string>> parts;
    for (const std::string& assignment : assignments) parts.push_back(SplitAssignment(assignment));
    std::vector<CellWrite> cells;
    for (const auto& [column, value] : parts) cells.push_back({column, value, args->timestamp});
    WriteOptions options{.sync = args->sync};
    std::pair<std::string, std::string> condition;
    if (put->count("--if-absent") > 0) {
      condition.first = globals.Bytes(args->if_absent);
      options.condition = Condition{.column = condition.first};
    } else if (put->count("--if-equals") > 0) {
      condition = SplitAssignment(globals.Bytes(args->if_equals), "--if-equals");
      options.condition = Condition{.column = condition.first, .equals = condition.second};
    }
    const auto store = globals.OpenStore(false);
    const auto result = OrFail(store->PutRow(args->dataset, globals.Bytes(args->row), cells, options));
    if (globals.json) {
      Json answer = {{"ok", true}};
      if (result.timestamp) answer["timestamp"] = *result.timestamp;
      PrintJson(answer);
    } else if (result.timestamp) {
      Print("written at {}\n", *result.timestamp);
    }
    if (args->timestamp && !globals.json) TellOfExpired(*store, args->dataset, *args->timestamp);
  });
}

void AddGet(CLI::App& app, Globals& globals) {
  struct Arguments {
    std::string dataset, row;
    Choice choice;
    std::string after;
    uint32_t limit = 100;
    bool all = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* get = app.add_subcommand("get", "Read a row, or columns of it, page by page");
  get->add_option("dataset", args->dataset, kDatasetHelp)->required();
  get->add_option("row", args->row, kRowHelp)->required();
  get->add_option("columns", args->choice.columns, "Only these columns; without any, all")
      ->type_name("COLUMN");
  args->choice.AddTo(*get);
  get->add_option("--after", args->after, "Begin after this column, in byte order, whether it exists or not")
      ->type_name("COLUMN")
      ->excludes("--marker");
  get->add_option("--limit", args->limit, "Columns in a page")
      ->capture_default_str()
      ->check(CLI::Range(uint32_t{1}, std::numeric_limits<uint32_t>::max()));
  get->add_flag("--all", args->all, "Read page after page to the end of the row");
  get->footer("Example, the newest 5 clicks of a user: kv get events user:7 click --versions 5");
  get->callback([get, args, &globals] {
    const auto store = globals.OpenStore(false);
    const std::string row = globals.Bytes(args->row);
    ReadOptions options{.versions = args->choice.versions,
                        .time_range = args->choice.range,
                        .limit = args->limit,
                        .marker = args->choice.marker};
    if (!args->choice.columns.empty()) options.columns = globals.Bytes(args->choice.columns);
    // The empty name is a column, too.
    if (get->count("--after") > 0) options.after_column = globals.Bytes(args->after);
    Table table({"COLUMN", "TIMESTAMP", "VALUE"});
    const WholeCommand limit(globals);
    do {
      const Row page = OrFail(store->GetRow(args->dataset, row, options));
      if (globals.json) {
        Json answer = json_api::RowToJson(row, page);
        answer["ok"] = true;
        PrintJson(answer);
      } else {
        AddItems(table, page.items, {});
      }
      options.marker = page.marker;
    } while (args->all && !options.marker.empty());
    if (globals.json) return;
    table.Print();
    PrintMarker(options.marker);
  });
}

void AddDelete(CLI::App& app, Globals& globals) {
  struct Arguments {
    std::string dataset, row;
    std::vector<std::string> columns;
    std::optional<uint64_t> timestamp;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("delete", "Delete a row, columns of it, or single cells");
  command->add_option("dataset", args->dataset, kDatasetHelp)->required();
  command->add_option("row", args->row, kRowHelp)->required();
  command
      ->add_option("columns", args->columns,
                   "Delete all versions of these columns; without any, the whole row")
      ->type_name("COLUMN");
  TakeTime(command->add_option(
      "--timestamp", args->timestamp,
      "Only the cell with this timestamp of each column named; for datasets that keep all versions"));
  command->footer(R"(Examples:
  kv delete events user:7            the whole row
  kv delete events user:7 click      a column)");
  command->callback([args, &globals] {
    DeleteOptions options;
    const auto columns = globals.Bytes(args->columns);
    if (args->timestamp && columns.empty()) {
      WrongUsage("--timestamp: name the columns whose cells with this timestamp are to be deleted");
    }
    if (args->timestamp) {
      options.cells.emplace();
      for (const std::string& column : columns) options.cells->push_back({column, *args->timestamp});
    } else if (!columns.empty()) {
      options.columns = columns;
    }
    const auto store = globals.OpenStore(false);
    OrFail(store->DeleteRow(args->dataset, globals.Bytes(args->row), options));
    if (globals.json) PrintJson({{"ok", true}});
  });
}

void AddScan(CLI::App& app, Globals& globals) {
  struct Arguments {
    std::string dataset;
    RowRange range;
    Choice choice;
    uint64_t limit = 100;
    bool all = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* scan = app.add_subcommand(
      "scan", "Read rows in order of their keys; on MySQL shards, in order within each shard");
  scan->add_option("dataset", args->dataset, kDatasetHelp)->required();
  scan->add_option("--start-row", args->range.start, "From this row on")->type_name("ROW");
  scan->add_option("--end-row", args->range.end, "Before this row")->type_name("ROW");
  scan->add_option("--partition", args->range.shard, "Only rows of this shard: mod00003, for instance");
  scan->add_option("--columns", args->choice.columns,
                   "Only these columns; rows without any of them are left out")
      ->type_name("COLUMN");
  args->choice.AddTo(*scan);
  scan->add_option("--limit", args->limit, "How many rows")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{1}, std::numeric_limits<uint64_t>::max()));
  scan->add_flag("--all", args->all, "Read to the end");
  scan->footer("Example: kv scan events --start-row user:1 --end-row user:2 --columns click");
  scan->callback([args, &globals] {
    const auto store = globals.OpenStore(false);
    const RowRange range{globals.Bytes(args->range.start), globals.Bytes(args->range.end), args->range.shard};
    ScanOptions options{
        .versions = args->choice.versions, .time_range = args->choice.range, .marker = args->choice.marker};
    if (!args->choice.columns.empty()) options.columns = globals.Bytes(args->choice.columns);
    const WholeCommand limit(globals);
    const auto cursor = OrFail(store->ScanRows(args->dataset, range, options));
    Table table({"ROW", "COLUMN", "TIMESTAMP", "VALUE"});
    ScannedRow row;
    std::string marker;
    for (uint64_t rows = 0;; rows += row.continues ? 0 : 1) {
      std::string before = cursor->marker();
      if (!OrFail(cursor->Next(row))) break;
      if (!args->all && rows == args->limit) {
        marker = std::move(before);
        break;
      }
      if (globals.json) {
        PrintJson(json_api::ScannedRowToJson(row));
      } else {
        AddItems(table, row.items, {Escape(row.key)});
      }
    }
    if (globals.json) {
      PrintJson({{"marker", json_api::MarkerToJson(marker)}});
      return;
    }
    table.Print();
    PrintMarker(marker);
  });
}

}  // namespace

void AddRowCommands(CLI::App& app, Globals& globals) {
  AddPut(app, globals);
  AddGet(app, globals);
  AddDelete(app, globals);
  AddScan(app, globals);
}

}  // namespace kvstore::cli
