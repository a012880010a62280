#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/escape.h"
#include "cli/reports/moments.h"
#include "cli/reports/report_command.h"
#include "reports/steps.h"

/// kv report delete, compact, rollup.
namespace kvstore::cli {
namespace {

void AddDelete(CLI::App& group, Globals& globals) {
  struct Arguments {
    ReportOptions options;
    std::vector<std::string> metrics;
    std::string from, to, zone = "UTC";
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* command = group.add_subcommand("delete", "Delete the points of metrics in a span of time");
  args->options.AddTo(*command);
  command->add_option("metric", args->metrics, "The metrics")->required();
  command->add_option("--from", args->from, "The first time whose points are deleted")
      ->type_name("TIME")
      ->required();
  command->add_option("--to", args->to, "The first time whose points stay")->type_name("TIME")->required();
  command->add_option("--zone", args->zone, "Time zone of dates")->type_name("ZONE")->capture_default_str();
  command->footer(
      R"(Deletes what is there at this moment; points that are written later count. TIME as in kv report query.

Example:
  kv report delete flights departures delay --from 2013-01-01 --to 2013-02-01)");
  command->callback([args, &globals] {
    const absl::TimeZone zone = OrWrongUsage("--zone", reports::LoadZone(args->zone));
    const auto now = static_cast<int64_t>(WallClockMs());
    const reports::TimeSpan span{OrWrongUsage("--from", ParseMoment(args->from, now, zone)),
                                 OrWrongUsage("--to", ParseMoment(args->to, now, zone))};
    if (span.from >= span.to) WrongUsage("--to", absl::InvalidArgumentError("must be later than --from"));
    const ReportStore reports(globals, args->options.dataset);
    const uint64_t rows = OrFail(reports->Delete(args->options.name, args->metrics, span));
    if (globals.json) {
      PrintJson({{"ok", true}, {"rows", rows}});
    } else {
      Print("deleted from {} to {}, in {} rows\n", Rfc3339(span.from, zone), Rfc3339(span.to, zone), rows);
    }
  });
}

void AddCompact(CLI::App& group, Globals& globals) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* compact = group.add_subcommand(
      "compact",
      "Merge what many loads have written, and remove what is past the retention; no answer changes");
  options->AddTo(*compact);
  compact->footer(R"(Each load writes chunks of its own. Merged ones are read faster and take less space.

Example:
  kv report compact flights)");
  compact->callback([options, &globals] {
    const WholeCommand limit(globals);
    const ReportStore reports(globals, options->dataset);
    const reports::CompactionResult result = OrFail(reports->Compact(options->name));
    if (globals.json) {
      PrintJson({{"ok", true},
                 {"rows", result.rows},
                 {"chunks_merged", result.chunks_merged},
                 {"chunks_written", result.chunks_written},
                 {"rows_expired", result.rows_expired},
                 {"bytes_before", result.bytes_before},
                 {"bytes_after", result.bytes_after}});
      return;
    }
    Print("{} rows: {} chunks became {}, {} bytes before, {} after; {} rows were past the retention\n",
          result.rows, result.chunks_merged, result.chunks_written, result.bytes_before, result.bytes_after,
          result.rows_expired);
  });
}

void AddRollup(CLI::App& group, Globals& globals) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* rollup =
      group.add_subcommand("rollup", "Make the report's roll-ups where they are not up to date");
  options->AddTo(*rollup);
  rollup->footer(
      R"(kv report alter declares them. Queries are right without this command, and faster after it.

Example:
  kv report rollup flights)");
  rollup->callback([options, &globals] {
    const WholeCommand limit(globals);
    const ReportStore reports(globals, options->dataset);
    const reports::RollupResult result = OrFail(reports->MakeRollups(options->name));
    if (globals.json) {
      PrintJson({{"ok", true},
                 {"rows", result.rows},
                 {"rows_current", result.rows_current},
                 {"rows_written", result.rows_written},
                 {"bytes_written", result.bytes_written}});
      return;
    }
    Print("{} rows: {} were up to date, {} were made, {} bytes\n", result.rows, result.rows_current,
          result.rows_written, result.bytes_written);
  });
}

}  // namespace

void AddReportUpkeepCommands(CLI::App& group, Globals& globals) {
  AddDelete(group, globals);
  AddCompact(group, globals);
  AddRollup(group, globals);
}

}  // namespace kvstore::cli
