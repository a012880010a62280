#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/escape.h"
#include "cli/reports/load_file.h"
#include "cli/reports/report_command.h"
#include "reports/steps.h"

/// kv report load.
namespace kvstore::cli {
namespace {

constexpr int kMaxBatchPoints = 1'000'000;
/// Never to be changed: a load with --add that another version has begun would be cut into other batches.
constexpr uint64_t kBatchPoints = 100'000;
constexpr int kMaxInFlight = 16;
/// Batches of values that are added may be written in any order.
constexpr size_t kInFlightOfAdds = 4;

struct Arguments {
  ReportOptions options;
  std::vector<std::string> files;
  std::string format;
  std::string reject_file;
  std::string batch;
  std::string zone = "UTC";
  std::vector<std::string> ignored;
  bool add = false;
  std::optional<uint64_t> batch_points;
  std::optional<uint64_t> in_flight;
};

/// The files of the command line, with their rejected lines.
struct Files {
  std::vector<FileToLoad> files;
  std::vector<std::string> reject_files;     // of each file; empty: none
  std::deque<RejectedLines> rejected_lines;  // of each file
};

Files ReadFiles(const Arguments& args) {
  const std::vector<std::string> paths = args.files.empty() ? std::vector<std::string>{"-"} : args.files;
  const auto wrong = [](const char* option, const std::string& problem) {
    WrongUsage(option, absl::InvalidArgumentError(problem));
  };
  const bool reads_input = std::find(paths.begin(), paths.end(), "-") != paths.end();
  if (paths.size() > 1 && !args.batch.empty()) {
    wrong("--batch", "names the batches of one file; load these files one by one");
  }
  if (paths.size() > 1 && !args.reject_file.empty()) {
    wrong("--reject-file", "is for one file; without it the lines of each FILE go to FILE.rejects");
  }
  if (args.add && reads_input && args.batch.empty()) {
    wrong("--add",
          "from standard input: name what you load with --batch PREFIX, so that it is not counted twice when "
          "you "
          "load it again after a failure");
  }
  if (args.add && args.batch_points) {
    wrong("--batch-points",
          "not with --add: the same file must always be cut into the same batches, so that a load that is "
          "repeated counts nothing twice");
  }
  if (args.batch.size() > kMaxBatchPrefixBytes) {
    wrong("--batch", fmt::format("has {} bytes, the limit is {}", args.batch.size(), kMaxBatchPrefixBytes));
  }
  Files files;
  for (const std::string& path : paths) {
    files.files.push_back({path, OrWrongUsage("--format", FormatOf(path, args.format)), args.batch});
    files.reject_files.push_back(!args.reject_file.empty() ? args.reject_file
                                 : path == "-"             ? ""
                                                           : path + ".rejects");
    files.rejected_lines.emplace_back(files.reject_files.back()).Begin(paths);
  }
  return files;
}

void PrintLoaded(const Globals& globals, const Files& files, const std::vector<LoadCounts>& counts,
                 double seconds) {
  LoadCounts all;
  for (const LoadCounts& one : counts) {
    all.lines += one.lines;
    all.points += one.points;
    all.rejected += one.rejected;
    all.blank += one.blank;
  }
  if (globals.json) {
    Json json = {{"ok", true},           {"lines", all.lines},
                 {"points", all.points}, {"rejected", all.rejected},
                 {"blank", all.blank},   {"seconds", seconds}};
    for (const RejectedLines& rejected : files.rejected_lines) {
      if (Json first = rejected.First(); !first.empty()) json["first_rejected"] = std::move(first);
    }
    PrintJson(json);
    return;
  }
  for (const RejectedLines& rejected : files.rejected_lines) rejected.Tell();
  Print("{} lines: {} points, {} rejected{}, in {:.1f} s ({:.0f} points a second)\n", all.lines, all.points,
        all.rejected, all.blank == 0 ? "" : fmt::format(", {} blank", all.blank), seconds,
        static_cast<double>(all.points) / std::max(seconds, 0.001));
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i].rejected == 0 || files.reject_files[i].empty()) continue;
    Print("rejected lines are in {}\n", files.reject_files[i]);
  }
}

void Load(const Arguments& args, const Globals& globals) {
  LoadOptions options{.report = args.options.name,
                      .zone = OrWrongUsage("--zone", reports::LoadZone(args.zone)),
                      .batch_points = args.batch_points.value_or(kBatchPoints),
                      .add = args.add,
                      .ignored = args.ignored};
  Files files = ReadFiles(args);
  const ReportStore reports(globals, args.options.dataset);
  const auto begun = std::chrono::steady_clock::now();
  std::vector<LoadCounts> counts;
  try {
    BatchWriter writer(*reports, args.add, args.in_flight.value_or(args.add ? kInFlightOfAdds : 1));
    for (size_t i = 0; i < files.files.size(); ++i) {
      counts.push_back(LoadFile(*reports, options, files.files[i], writer, files.rejected_lines[i]));
      // A mistake in the next file must not end batches of this one.
      OrFail(writer.Finish());
    }
  } catch (const Failure&) {
    if (!globals.json) {
      for (const RejectedLines& rejected : files.rejected_lines) rejected.Tell();
    }
    throw;
  }
  PrintLoaded(globals, files, counts,
              std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
}

constexpr char kFooter[] =
    R"(CSV (RFC 4180): the heading names the columns: time, every segment key (one with a default may be left out), and
metrics. Each cell of a metric is a point; an empty one is none. A set or a distribution has its values between
semicolons.

  time,carrier,origin,departures,delay
  2013-01-01T05:00:00Z,UA,EWR,3,4;-2;11
  2013-01-01T06:00:00Z,AA,JFK,1,

JSON lines: a line is one point, or has a point of each metric that it names.

  {"metric":"departures","time":"2013-01-01T05:00:00Z","segments":{"carrier":"UA","origin":"EWR"},"value":3}
  {"time":"2013-01-01T05:00:00Z","carrier":"UA","origin":"EWR","departures":3,"delay":[4,-2,11]}

Parquet (where the program kv-parquet is): columns as in the heading of CSV; a time may be a timestamp, a date or a
string, the value of a segment key of any type; a set or a distribution is a list, or one value. A line is a row of the
file.

Times are RFC 3339, dates (midnight in --zone), or milliseconds since 1970, and multiples of the report's resolution.
A line with a mistake is rejected as a whole, counted, and written to the reject file with its number and the reason;
blank lines are skipped and counted. The reject file of FILE is FILE.rejects; one that an earlier load has left is
removed first, so that there is one only if this load rejects lines. Standard input has none unless --reject-file names
one; instead, the first five reasons are printed on standard error (with --json, they are first_rejected in the answer).

A load that was interrupted is repeated by the same command, and counts nothing twice: a point replaces the one of its
metric, segments and time. With --add, points are added to those that are there; then batches have IDs, by which the
store knows for 30 days which of them it has. An ID is made from the file's path, size and time of change, or from
--batch, and from the place and the text of the batch: a file that was changed is another file. With --batch points
that replace others have IDs, too: a batch that is known is skipped then, even if its points were deleted since.

Examples:
  kv report load flights departures.csv
  kv report load flights 2013.parquet
  zcat clicks.jsonl.gz | kv report load site - --format jsonl --add --batch clicks-2026-01-01

Exit codes: 0 done, also if lines were rejected: see the count; 1 failed; 2 wrong usage.)";

}  // namespace

void AddReportLoadCommand(CLI::App& group, Globals& globals) {
  auto args = std::make_shared<Arguments>();
  CLI::App* load = group.add_subcommand("load", "Load points from files of CSV, JSON lines or Parquet");
  args->options.AddTo(*load);
  load->add_option("file", args->files, "Files; - or nothing: standard input");
  load->add_option("--format", args->format, "Format of the files, if their names do not say it")
      ->check(OneOf({"csv", "jsonl", "parquet"}));
  load->add_flag(
      "--add", args->add,
      "Add to the values that are there (sets and distributions: unite with them), in place of replacing "
      "them");
  load->add_option("--zone", args->zone, "Time zone of dates without a time")
      ->type_name("ZONE")
      ->capture_default_str();
  load->add_option("--ignore", args->ignored,
                   "A column, or a field of JSON lines, that is not read; may be repeated")
      ->type_name("COLUMN")
      ->allow_extra_args(false);
  load->add_option("--reject-file,--rejects", args->reject_file,
                   "Where invalid lines go; FILE.rejects by default, for standard input nowhere")
      ->type_name("FILE");
  load->add_option("--batch", args->batch, "Beginning of the batches' IDs, see below")->type_name("PREFIX");
  load->add_option(
          "--batch-points", args->batch_points,
          "Points that are written together; 100000 by default, which is the most that a server takes, "
          "and always with --add")
      ->check(CLI::Range(1, kMaxBatchPoints));
  load->add_option(
          "--in-flight", args->in_flight,
          "Batches that are written at once; 4 with --add, else 1, so that of a point that comes twice the "
          "later one counts")
      ->check(CLI::Range(1, kMaxInFlight));
  load->footer(kFooter);
  load->callback([args, &globals] { Load(*args, globals); });
}

}  // namespace kvstore::cli
