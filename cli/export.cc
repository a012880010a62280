#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/line_source.h"
#include "cli/mapping_source.h"
#include "cli/object_source.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/row_source.h"
#include "json_api/answers.h"

/// kv export: writes a dataset as JSON lines.
namespace kvstore::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// The progress is shown after every so many bytes.
constexpr size_t kShowBytes = size_t{1} << 20;

struct Arguments {
  std::string dataset;
  std::string to = "-";
  std::string format = "jsonl";
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
    R"(Writes all of a dataset, in lines that kv import loads as they are; the last line is {"marker":null}: without it, an
export to standard output is incomplete.

  rows      all visible cells with their timestamps, in the form of kv scan --json. Rows of an embedded store come in byte
            order of their keys; on MySQL shards, in that order within each shard. One that is larger than 1 MiB takes
            several lines
  objects   {"id": ID, "data": {...}}, in the order of IDs, those that were deleted softly too. An import of these lines
            changes the objects with these IDs; it cannot create an object under a given ID, as a backup and a migration do
  mappings  {"from": ID, "to": ID, "sequence": number}, in the order of from and to

A file gets its name when it is complete: until then, and if the export fails or is interrupted, one that was there
before stays as it is. Only its owner can read it. Writers are not held up: each row, object and entry is read as it is
at one moment, different ones at different moments. To read the state of one moment, stop the writers. With --timeout-ms, all reads
from a server together may take that long; without it, an export takes as long as it needs.

The settings of the dataset are not in the file: see kv dataset show. Cells keep their timestamps, and expire when the
dataset that they are imported into says so.

Examples:
  kv export events --to events.jsonl
  kv export events | gzip > events.jsonl.gz
  kv export events | kv --data /tmp/other import events

Exit codes: 0 everything was written; 1 failed, and FILE is as it was before; 2 wrong usage.)";

}  // namespace

void AddExportCommand(CLI::App& app, Globals& globals) {
  auto args = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("export", "Write a dataset as JSON lines, which kv import loads");
  command->add_option("dataset", args->dataset)->required();
  command->add_option("--to", args->to, "The file to write; - or nothing: standard output")
      ->type_name("FILE");
  command->add_option("--format", args->format, "jsonl: JSON lines")
      ->check(CLI::IsMember({"jsonl"}))
      ->capture_default_str();
  command->footer(kFooter);
  command->callback([args, &globals] { RunExport(*args, globals); });
}

}  // namespace kvstore::cli
