#include <fmt/format.h>

#include <array>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/import_input.h"
#include "cli/line_loader.h"
#include "cli/line_reader.h"
#include "cli/object_loader.h"
#include "cli/progress.h"
#include "cli/rejected_lines.h"
#include "cli/row_loader.h"
#include "json/json_fields.h"
#include "json_api/answers.h"

/// kv import: loads JSON lines, or Parquet, into a dataset.
namespace kvstore::cli {
namespace {

/// Returns a loader for the dataset's shape. The store must outlive it.
std::unique_ptr<LineLoader> NewLineLoader(KVStore& store, const DatasetSpec& spec, const LoadMode& mode) {
  switch (spec.shape) {
    case Shape::kRows:
      return NewRowLoader(store, spec, mode);
    case Shape::kObjects:
      return NewObjectLoader(store, spec, mode);
    case Shape::kMappings:
      break;
  }
  return NewMappingLoader(store, spec, mode);
}

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr size_t kBatchLines = 1000;
constexpr size_t kBatchBytes = size_t{4} << 20;

struct Arguments {
  std::string dataset;
  std::string file = "-";
  std::string format = "jsonl";
  std::string reject_file;
  std::string progress_file;
  bool restart = false;
  bool only_changes = false;
  bool verify = false;
  std::string keys;

  bool IsParquet() const { return format == "parquet"; }
  LoadMode Mode() const { return {.compare = only_changes || verify, .write = !verify, .keys = keys}; }
};

/// A counter, with its name in JSON and in the progress file.
struct State;
struct Count {
  const char* name;
  uint64_t State::*place;
};

/// The work done so far. It is saved in the progress file, so that an interrupted import can continue.
struct State {
  uint64_t offset = 0;  // bytes of the input that are processed
  uint64_t lines = 0;
  uint64_t imported = 0;  // written
  uint64_t rejected = 0;
  uint64_t blank = 0;    // skipped
  uint64_t markers = 0;  // lines that end a scan or an export
  // Counted only where lines are compared.
  uint64_t fresh = 0;
  uint64_t changed = 0;
  uint64_t same = 0;

  static constexpr std::array<Count, 9> Counts();
};

constexpr std::array<Count, 9> State::Counts() {
  return {{{"offset", &State::offset},
           {"lines", &State::lines},
           {"imported", &State::imported},
           {"rejected", &State::rejected},
           {"blank", &State::blank},
           {"markers", &State::markers},
           {"new", &State::fresh},
           {"changed", &State::changed},
           {"same", &State::same}}};
}

/// Returns the marker if the line is the last one of a scan or an export, {"marker": null}, or of a page of a
/// scan, {"marker": "..."}; empty for null. nullopt for any other line.
std::optional<std::string> ReadMarkerLine(const std::string& line) {
  // No marker is nearly that long. Lines that cannot be one are not parsed twice.
  constexpr size_t kMaxBytes = size_t{16} << 10;
  if (line.size() > kMaxBytes || line.find("\"marker\"") == std::string::npos) return std::nullopt;
  const auto json = ParseJson(line);
  if (!json.ok() || !json->is_object() || json->size() != 1) return std::nullopt;
  const auto marker = json->find("marker");
  if (marker == json->end() || !(marker->is_null() || marker->is_string())) return std::nullopt;
  return marker->is_null() ? "" : marker->get<std::string>();
}

class Import {
 public:
  Import(const Arguments& args, KVStore& store, std::unique_ptr<ImportInput> input, const DatasetSpec& spec,
         RejectedLines& rejected_lines)
      : args_(args),
        rejected_lines_(rejected_lines),
        loader_(NewLineLoader(store, spec, args.Mode())),
        input_(std::move(input)),
        bar_("import " + args.dataset, "lines") {
    if (!args_.progress_file.empty() && !args_.restart) Resume();
    if (state_.offset > 0) {
      rejected_lines_.Append();
    } else {
      rejected_lines_.Begin({args_.file});
    }
  }

  State Run() {
    std::string text;
    while (true) {
      const LineReader::Result result = OrFail(input_->Next(text));
      if (result == LineReader::Result::kEnd) break;
      ++state_.lines;
      absl::Status problem;
      if (result == LineReader::Result::kTooLong) {
        problem =
            absl::InvalidArgumentError(fmt::format("longer than the limit of {} bytes", kMaxImportLineBytes));
        text.clear();
      } else if (text.find_first_not_of(" \t\r") == std::string::npos) {
        ++state_.blank;
        continue;
      } else if (const auto marker = ReadMarkerLine(text)) {
        ++state_.markers;
        last_marker_ = *marker;
        continue;
      }
      bytes_ += text.size();
      batch_.push_back({state_.lines, std::move(text), problem});
      if (batch_.size() >= kBatchLines || bytes_ >= kBatchBytes) Send();
    }
    Send();
    if (!args_.progress_file.empty()) fs::remove(args_.progress_file);
    return state_;
  }

  /// Whether the last marker among the lines says that the scan was not at its end.
  bool MoreFollow() const { return !last_marker_.empty(); }
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }

 private:
  void Resume() {
    std::ifstream file(args_.progress_file);
    if (!file) return;
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const Json json = ParseJson(text).value_or(Json());
    JsonFields fields(json, "");
    State state;
    for (const Count& count : State::Counts()) {
      state.*count.place = fields.OptionalUint(count.name, 0, UINT64_MAX).value_or(0);
    }
    const uint64_t size = fields.Uint("file_bytes", 0, UINT64_MAX);
    const std::string dataset = fields.String("dataset");
    const std::string mode = fields.OptionalString("mode").value_or("all");
    if (!fields.Finish().ok() || size != input_->size() || dataset != args_.dataset || mode != ModeName() ||
        state.offset > size) {
      throw Failure{absl::FailedPreconditionError(
          fmt::format("{} is of another import (of another dataset, with other options, or the file has "
                      "changed); start over with --restart",
                      args_.progress_file))};
    }
    state_ = state;
    input_->Skip(state.offset);
  }

  const char* ModeName() const {
    return args_.verify ? "verify" : args_.only_changes ? "only-changes" : "all";
  }

  void Send() {
    const absl::Status status = loader_->Load(batch_);
    if (!status.ok()) {
      throw Failure{absl::Status(
          status.code(),
          fmt::format("stopped at line {}: {}{}", batch_.front().number, std::string(status.message()),
                      args_.progress_file.empty() ? ""
                      : args_.restart             ? "; without --restart the same command goes on from here"
                                                  : "; the same command goes on from here"))};
    }
    for (const Line& line : batch_) CountOutcome(line);
    batch_.clear();
    bytes_ = 0;
    state_.offset = input_->offset();
    SaveProgress();
    const double seconds = Seconds();
    bar_.Show(input_->size() > 0 ? state_.offset : state_.lines, input_->size(),
              fmt::format("{} lines, {:.0f} a second, {} rejected", state_.lines,
                          static_cast<double>(state_.lines) / std::max(seconds, 0.001), state_.rejected));
  }

  void CountOutcome(const Line& line) {
    switch (line.outcome) {
      case Outcome::kRejected:
        ++state_.rejected;
        return Reject(line, std::string(line.problem.message()));
      case Outcome::kLoaded:
        break;
      case Outcome::kNew:
        ++state_.fresh;
        if (args_.verify) return Reject(line, "is not there");
        break;
      case Outcome::kChanged:
        ++state_.changed;
        if (args_.verify) return Reject(line, "something else is there");
        break;
      case Outcome::kSame:
        ++state_.same;
        return;
    }
    ++state_.imported;
  }

  void Reject(const Line& line, const std::string& why) { rejected_lines_.Add(line.number, line.text, why); }

  void SaveProgress() {
    if (args_.progress_file.empty()) return;
    Json json = {{"dataset", args_.dataset}, {"file_bytes", input_->size()}, {"mode", ModeName()}};
    for (const Count& count : State::Counts()) json[count.name] = state_.*count.place;
    OrFail(ReplaceFile(fs::absolute(args_.progress_file), json.dump() + "\n"));
  }

  const Arguments args_;
  RejectedLines& rejected_lines_;
  const std::unique_ptr<LineLoader> loader_;
  const std::unique_ptr<ImportInput> input_;
  ProgressBar bar_;
  const Clock::time_point begun_ = Clock::now();
  State state_;
  std::string last_marker_;
  std::vector<Line> batch_;
  size_t bytes_ = 0;
};

/// Formats the numbers of lines, which add up to all, as one line for people.
std::string CountsText(const Arguments& args, const State& state) {
  if (args.verify) {
    return fmt::format("{} lines: {} are there, {} are not, {} are different, {} rejected", state.lines,
                       state.same, state.fresh, state.changed, state.rejected);
  }
  if (args.only_changes) {
    return fmt::format("{} lines: {} new, {} changed, {} same, {} rejected", state.lines, state.fresh,
                       state.changed, state.same, state.rejected);
  }
  return fmt::format("{} lines: {} imported, {} rejected", state.lines, state.imported, state.rejected);
}

std::string Summary(const Arguments& args, const State& state) {
  std::string text = CountsText(args, state);
  if (state.blank > 0) text += fmt::format(", {} blank", state.blank);
  if (state.markers > 0) text += fmt::format(", {} marker{}", state.markers, state.markers == 1 ? "" : "s");
  return text;
}

/// Returns why the command has failed although every line was read; OK if it has not.
absl::Status Verdict(const Arguments& args, const State& state) {
  const std::string input = args.file == "-" ? "standard input" : args.file;
  // An empty export as JSON lines has a line for its end; Parquet says by itself that it is complete.
  if (state.lines == state.blank && !args.IsParquet()) {
    return absl::InvalidArgumentError(
        fmt::format("{} has no lines, so nothing was {}", input, args.verify ? "compared" : "imported"));
  }
  if (args.verify && state.fresh + state.changed + state.rejected > 0) {
    return absl::FailedPreconditionError("the dataset does not have all lines of the file");
  }
  if (state.rejected > 0 && state.imported == 0 && state.same == 0) {
    return absl::InvalidArgumentError(
        fmt::format("nothing was imported: no line of {} is valid. kv import --help shows the lines of each "
                    "shape of dataset",
                    input));
  }
  return absl::OkStatus();
}

/// Opens what is imported. Throws Failure.
std::unique_ptr<ImportInput> OpenInput(const Arguments& args, Shape shape, const Globals& globals) {
  if (!args.IsParquet()) return OpenJsonLines(args.file);
  return OpenParquet(args.file, shape, args.Mode().compare, globals);
}

/// Ends the command if --keys was given for rows, whose lines name no objects. Throws Failure.
void CheckKeys(const Arguments& args, const DatasetSpec& spec) {
  if (args.keys.empty() || spec.shape != Shape::kRows) return;
  throw Failure{
      absl::InvalidArgumentError(fmt::format("--keys: '{}' has rows, whose keys are in the lines; only "
                                             "imports of objects and mappings look up IDs by "
                                             "key, so leave it out",
                                             spec.name))};
}

void RunImport(Arguments& args, const Globals& globals) {
  // For Parquet no place is remembered: an import that was interrupted begins again, and writes the same.
  if (args.file != "-" && !args.IsParquet()) {
    args.progress_file = args.file + ".progress";
    if (args.reject_file.empty()) args.reject_file = args.file + ".rejects";
  }
  const auto store = globals.OpenStore(false);
  State state;
  RejectedLines rejected_lines(args.reject_file);
  bool more_follow = false;
  double seconds = 0;
  try {
    const DatasetSpec spec = OrFail(store->GetDataset(args.dataset));
    CheckKeys(args, spec);
    Import import_run(args, *store, OpenInput(args, spec.shape, globals), spec, rejected_lines);
    state = import_run.Run();
    more_follow = import_run.MoreFollow();
    seconds = import_run.Seconds();
  } catch (const Failure&) {
    if (!globals.json) rejected_lines.Tell();
    throw;
  }
  const absl::Status verdict = Verdict(args, state);
  if (globals.json) {
    Json json = {{"ok", verdict.ok()}, {"more_follow", more_follow}, {"seconds", seconds}};
    for (const Count& count : State::Counts()) {
      if (count.place == &State::offset) continue;
      const bool of_comparison =
          count.place == &State::fresh || count.place == &State::changed || count.place == &State::same;
      if (of_comparison == args.Mode().compare || !of_comparison) json[count.name] = state.*count.place;
    }
    if (Json first = rejected_lines.First(); !first.empty()) json["first_rejected"] = std::move(first);
    PrintJson(json);
  } else {
    rejected_lines.Tell();
    Print("{}, in {:.1f} s ({:.0f} lines a second)\n", Summary(args, state), seconds,
          static_cast<double>(state.lines) / std::max(seconds, 0.001));
    const bool differs = args.verify && state.fresh + state.changed > 0;
    if (!args.reject_file.empty() && (state.rejected > 0 || differs)) {
      Print("{} lines are in {}\n", args.verify ? "these" : "rejected", args.reject_file);
    }
    if (more_follow) {
      PrintErr(
          "the last marker says that the scan was not at its end, so rows are missing here: use kv export, "
          "or kv scan --all\n");
    }
  }
  OrFail(verdict);
}

constexpr char kFooter[] =
    R"(Lines of the file, by the dataset's shape (strings or {"b64": "..."} for any bytes):
  rows      {"row": "user:7", "items": [{"column": "click", "value": "pin:3", "timestamp": 1700000000000}]}
            or as kv export and kv scan --json print them, with several versions of a column:
            {"row": "user:7", "items": [{"column": "click", "cells": [{"timestamp": 1700000000000, "value": "pin:3"}]}]}
  objects   {"data": {"title": "a chair"}, "id": ID? or "key": "..."?, "near": ID?, "shard": 0..65535?}
            The document is stored as it stands in the line. One with an id is also that of an object that was deleted
            softly
  mappings  {"from": ID, "to": ID, "sequence": number?}

The line {"marker": ...} at the end of an export or a scan is counted, and skipped. If the last one is not null, the
scan was not at its end, and the import says so. Cells keep their timestamps, and so their age.

Invalid lines are skipped, counted, and written to the reject file with their number and reason; blank lines are skipped
and counted. The reject file of FILE is FILE.rejects; one that an earlier import has left is removed first. Standard
input has none unless --reject-file names one; instead, the first five reasons are printed on standard error (with
--json, they are first_rejected in the answer). An import from a file that was interrupted continues when the same
command is run again: FILE.progress has the position. Up to one batch (1,000 lines) is then loaded twice, which is
harmless where lines have their own timestamps or sequences.

To import from a system that is still written to, load a first dump, then newer ones with --only-changes until a pass
finds little or nothing that is new or changed; stop the writes there, load a last time, and --verify. A cell with a
timestamp is compared with the stored one of that time, a cell without one with the newest. A cell that nobody would
see, because it has expired or max_versions newer ones exist, counts as the same. Data that is not in the file stays.

--keys names a dataset of rows that maps each object's key elsewhere to its ID: row KEY, column id. With it a line of
objects names its object by "key", and makes only one object however often it is loaded; and from and to of a mapping
may be {"key": "..."}. A line with an "id" changes the object with that ID.

--format parquet loads an export by kv export --format parquet, whose files are compared with the checksums of its
manifest, or a file with the same columns that another program has written. A line is then a row of the table; of long
tables, the cells of a row that follow each other. Columns of wide tables get the time of the export as their timestamp
or, of a single file, one from the store. An import of Parquet that was interrupted begins again. There is a reject file
only if --reject-file names one.

Examples:
  kv import events events.jsonl
  kv export events | kv --data /tmp/other import events
  kv import events --format parquet exports/20261124T031459Z-1a2b3c4d
  zcat events.jsonl.gz | kv import events --reject-file rejects.jsonl

Exit codes: 0 done, also if some lines were rejected: see the count; 1 failed, or all lines were rejected, or the input
has no lines, or with --verify not all lines are there; 2 wrong usage. (The export of an empty dataset has a line,
{"marker":null}; an input without any is mostly that of a command that has failed.))";

}  // namespace

void AddImportCommand(CLI::App& app, Globals& globals) {
  auto args = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("import", "Load a file of JSON lines, or Parquet, into a dataset");
  command->add_option("dataset", args->dataset, kDatasetHelp)->required();
  command
      ->add_option("file", args->file,
                   "- or nothing: standard input. Parquet: a file .parquet, or the folder of an export")
      ->capture_default_str();
  command->add_option("--format", args->format, "jsonl: JSON lines; parquet: Parquet files, by kv-parquet")
      ->check(OneOf({"jsonl", "parquet"}))
      ->capture_default_str();
  command
      ->add_option("--reject-file", args->reject_file,
                   "Where invalid lines go; FILE.rejects by default, for standard input nowhere")
      ->type_name("FILE");
  command->add_flag("--restart", args->restart, "Begin at the first line, whatever FILE.progress says");
  CLI::Option* changes = command->add_flag("--only-changes", args->only_changes,
                                           "Compare with the dataset, and write only what is new or changed");
  command
      ->add_flag("--verify", args->verify,
                 "Write nothing; lines that are missing in the dataset, or differ, go to the reject file")
      ->excludes(changes);
  command
      ->add_option("--keys", args->keys, "Dataset of rows that maps the objects' keys elsewhere to their IDs")
      ->type_name("DATASET");
  command->footer(kFooter);
  command->callback([args, &globals] { RunImport(*args, globals); });
}

}  // namespace kvstore::cli
