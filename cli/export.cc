#include "export/export.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/amounts.h"
#include "cli/arguments.h"
#include "cli/backup_source.h"
#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/line_source.h"
#include "cli/mapping_source.h"
#include "cli/object_source.h"
#include "cli/output_file.h"
#include "cli/parquet_export.h"
#include "cli/progress.h"
#include "cli/row_source.h"
#include "json_api/answers.h"

/// kv export: writes a dataset as JSON lines, or as Parquet files.
namespace kvstore::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// The progress is shown after every so many bytes.
constexpr size_t kShowBytes = size_t{1} << 20;

struct Arguments {
  std::string dataset;
  std::string to = "-";
  std::string format = "jsonl";
  ParquetExport parquet;
};

/// Returns a source of the dataset's lines. The store must outlive it.
absl::StatusOr<std::unique_ptr<LineSource>> NewLineSource(KVStore& store, const DatasetSpec& spec) {
  switch (spec.shape) {
    case Shape::kRows:
      return NewRowSource(store, spec);
    case Shape::kObjects:
      return NewObjectSource(store, spec);
    case Shape::kMappings:
      break;
  }
  return NewMappingSource(store, spec);
}

std::string CountsText(const LineSource& source) {
  std::string text;
  for (const auto& [name, count] : source.Counts()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  }
  return text;
}

void CopyLines(LineSource& source, OutputFile& output, const Arguments& args) {
  // A bar among the lines would make both unreadable.
  std::optional<ProgressBar> bar;
  if (args.to != "-" || ::isatty(STDOUT_FILENO) != 1) bar.emplace("export " + args.dataset, "bytes");
  uint64_t bytes = 0;
  uint64_t shown = 0;
  std::string line;
  while (OrFail(source.Next(line))) {
    line += '\n';
    output.Write(line);
    bytes += line.size();
    if (!bar || bytes - shown < kShowBytes) continue;
    bar->Show(bytes, 0, CountsText(source));
    shown = bytes;
  }
  // As at the end of a scan: who reads a pipe sees that nothing is missing.
  output.Write(ToLine({{"marker", json_api::MarkerToJson("")}}) + "\n");
}

void RunExport(const Arguments& args, const Globals& globals) {
  const Clock::time_point begun = Clock::now();
  const auto store = globals.OpenStore(false);
  // A stream of rows has the limits that were in force when it was opened.
  const WholeCommand limit(globals);
  const auto source = OrFail(NewLineSource(*store, OrFail(store->GetDataset(args.dataset))));
  OutputFile output(args.to);
  CopyLines(*source, output, args);
  output.Finish();
  if (args.to == "-") return;
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  if (globals.json) {
    Json answer = {{"ok", true}, {"file", args.to}, {"seconds", seconds}};
    for (const auto& [name, count] : source->Counts()) answer[name] = count;
    PrintJson(answer);
  } else {
    Print("exported {} to {}, in {:.1f} s\n", CountsText(*source), args.to, seconds);
  }
}

constexpr char kFooter[] =
    R"(--format jsonl writes all of a dataset, in lines that kv import loads as they are; the last line is {"marker":null}:
without it, an export to standard output is incomplete.

  rows      all visible cells with their timestamps, in the form of kv scan --json. Rows of an embedded store come in
            byte order of their keys; on MySQL shards, in that order within each shard. One that is larger than 1 MiB
            takes several lines
  objects   {"id": ID, "data": {...}}, in the order of IDs, those that were deleted softly too. An import of these lines
            changes the objects with these IDs; it cannot create an object under a given ID, as a backup and a migration
            do
  mappings  {"from": ID, "to": ID, "sequence": number}, in the order of from and to

A file gets its name when it is complete: until then, and if the export fails or is interrupted, one that was there
before stays as it is. Only its owner can read it. Writers are not held up: each row, object and entry is read as it is
at one moment, different ones at different moments. To read the state of one moment, stop the writers. With
--timeout-ms, all reads from a server together may take that long; without it, an export takes as long as it needs.

--format parquet writes Parquet files and a manifest into a new folder in DIR, by the program kv-parquet, which must be
there:

  rows      row, column, timestamp, value: a row of the table for each visible cell; with --columns: row, and these
            columns with their newest values; rows without any of them are left out
  objects   id, shard, type, local_id, timestamp, data; and with --columns fields of the documents (owner.name)
  mappings  from, to, sequence

A column of --columns is NAME or NAME:TYPE, of the types binary, string, int64, double, bool; without a type columns of
rows are binary, and fields of objects strings. Row keys, and columns and values in tables without --columns, are
binary, unless --text says that all of them are UTF-8. A value that has not its column's type fails the export, and is
named.

Opened in this process (--data, --config), the dataset is read as it is at one moment. Through a server, each row is.
With --at, --from or --backup it is read from a backup of the whole store, which is restored into a temporary folder:
the server that has the store open is not asked.

With --since, an export of the same dataset, only what was written to since that one is exported: each column of a row,
object and entry once, as it is now, in a table that has one more column, deleted. The dataset must have kept its
changes since then (kv dataset create D --keep-changes-ms 7d). Each export, whole or of changes, can be the one that the
next goes on with.

The settings of the dataset are not in an export: see kv dataset show. Cells keep their timestamps, and expire when the
dataset that they are imported into says so. docs/export.md says more of Parquet.

Examples:
  kv export events --to events.jsonl
  kv export events | gzip > events.jsonl.gz
  kv export events | kv --data /tmp/other import events
  kv export events --format parquet --to exports
  kv export events --format parquet --to exports --since monday --token tuesday
  kv export events --format parquet --to s3://bucket/exports --columns clicks:int64,country:string --token monday

Exit codes: 0 everything was written; 1 failed, and FILE is as it was before, or there is no manifest; 2 wrong usage.)";

/// Ends the command if options of one format were given with the other.
void CheckOptions(const CLI::App& command, const Arguments& args) {
  if (args.format == "parquet") {
    if (args.to == "-") WrongUsage("--to: name the folder, or the place in a bucket, for the export");
    return;
  }
  for (const char* option :
       {"--columns", "--text", "--token", "--since", "--at", "--from", "--backup", "--parallel"}) {
    if (command.count(option) > 0) WrongUsage(fmt::format("{}: only with --format parquet", option));
  }
}

void AddParquetOptions(CLI::App& command, ParquetExport& parquet) {
  command
      .add_option("--columns", parquet.columns,
                  "Parquet: these columns of the rows, or fields of the objects, are columns of the table")
      ->type_name("NAME[:TYPE],...")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_flag("--text", parquet.text, "Parquet, rows: all bytes are UTF-8");
  command
      .add_option("--token", parquet.token,
                  "Parquet: names the export; a call that is repeated with it makes no second one")
      ->type_name("TOKEN");
  command
      .add_option("--since", parquet.since,
                  "Parquet: only what has changed since this export, which is in the same place")
      ->type_name("EXPORT");
  TakeTime(command.add_option("--at", parquet.at_ms,
                              "Parquet: the dataset as it was at this time, from a backup"));
  command.add_option("--from", parquet.from.from, kWhereHelp)->type_name("URL");
  command.add_option("--backup", parquet.from.id, "Which backup to read; default: the newest")
      ->type_name("BACKUP");
  command.add_option("--parallel", parquet.lanes, "Parquet: write so many files at a time")
      ->check(CLI::Range(size_t{1}, exports::kMaxLanes))
      ->capture_default_str();
}

}  // namespace

void AddExportCommand(CLI::App& app, Globals& globals) {
  auto args = std::make_shared<Arguments>();
  args->parquet.lanes = exports::kUsualLanes;
  CLI::App* command =
      app.add_subcommand("export", "Write a dataset as JSON lines, which kv import loads, or as Parquet");
  command->add_option("dataset", args->dataset, kDatasetHelp)->required();
  command
      ->add_option("--to", args->to,
                   "The file to write; - or nothing: standard output. Parquet: DIR, or s3://BUCKET/PREFIX")
      ->type_name("FILE|DIR|URL");
  command
      ->add_option("--format", args->format, "jsonl: JSON lines; parquet: files and a manifest in a folder")
      ->check(OneOf({"jsonl", "parquet"}))
      ->capture_default_str();
  AddParquetOptions(*command, args->parquet);
  command->footer(kFooter);
  command->callback([args, command, &globals] {
    CheckOptions(*command, *args);
    if (args->format != "parquet") return RunExport(*args, globals);
    ParquetExport told = args->parquet;
    told.dataset = args->dataset;
    told.to = args->to;
    told.from_backup = told.at_ms != 0 || !told.from.from.empty() || !told.from.id.empty();
    ExportParquet(told, globals);
  });
}

}  // namespace kvstore::cli
