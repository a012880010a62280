#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/amounts.h"
#include "cli/reports/definitions.h"
#include "cli/reports/report_command.h"

/// kv report create, alter, drop.
namespace kvstore::cli {
namespace {

void AddCreate(CLI::App& group, Globals& globals) {
  struct Arguments {
    ReportOptions options;
    std::vector<std::string> keys, metrics;
    std::optional<uint64_t> resolution_ms, period_ms, retention_ms;
    uint32_t salts = reports::ReportSettings().salts;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* create = group.add_subcommand("create", "Create an empty report, and the store if there is none");
  args->options.AddTo(*create);
  create->add_option("--key", args->keys, "A segment key, which points name, or its default; may be repeated")
      ->type_name("NAME[=DEFAULT]")
      ->allow_extra_args(false);
  create->add_option("--metric", args->metrics, "A metric; may be repeated")
      ->type_name("NAME[:KIND]")
      ->allow_extra_args(false);
  TakeDuration(create->add_option("--resolution", args->resolution_ms,
                                  "Times of points are multiples of this; 1s by default"));
  TakeDuration(create->add_option("--period", args->period_ms,
                                  "Stretch of time that one row holds, a multiple of the resolution; 30d by "
                                  "default. It never changes"));
  create
      ->add_option("--salts", args->salts,
                   "Rows of a metric and period, which are read in parallel. It never changes")
      ->check(CLI::Range(1, static_cast<int>(reports::kMaxSalts)))
      ->capture_default_str();
  TakeDuration(create->add_option("--retention", args->retention_ms, "Age at which points expire; 0: never"));
  create->footer(
      R"(KIND is value (a number; the default), distinct (a set whose members count once) or distribution (many numbers, for
percentiles). docs/reports.md says how to choose the period and the salts. Segment keys and metrics can be added later.

Example:
  kv report create flights --key carrier --key origin=? --metric departures --metric delay:distribution
  kv report create clicks --key country --metric clicks --resolution 1h --period 30d --salts 4 --retention 400d)");
  create->callback([args, &globals] {
    reports::ReportInfo info{.name = args->options.name};
    for (const std::string& key : args->keys)
      info.keys.push_back(OrWrongUsage("--key", ParseSegmentKey(key)));
    for (const std::string& metric : args->metrics) {
      info.metrics.push_back(OrWrongUsage("--metric", ParseMetric(metric)));
    }
    reports::ReportSettings& settings = info.settings;
    settings.resolution_ms = args->resolution_ms.value_or(settings.resolution_ms);
    const uint64_t period_ms = args->period_ms.value_or(settings.period_s * 1000);
    if (period_ms % 1000 != 0) {
      WrongUsage("--period", absl::InvalidArgumentError("must be a whole number of seconds"));
    }
    settings.period_s = period_ms / 1000;
    settings.salts = args->salts;
    settings.retention_ms = args->retention_ms.value_or(0);
    const ReportStore reports(globals, args->options.dataset, true);
    OrFail(reports->Create(info));
    PrintReportDone(globals, fmt::format("created {}", info.name));
  });
}

void AddAlter(CLI::App& group, Globals& globals) {
  struct Arguments {
    ReportOptions options;
    std::string key;
    std::vector<std::string> metrics, rollups;
    std::optional<uint64_t> retention_ms;
    bool no_rollups = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* alter = group.add_subcommand("alter", "Change settings, with immediate effect");
  args->options.AddTo(*alter);
  alter->add_option("--add-key", args->key, "A further segment key; points that are there have its default")
      ->type_name("NAME=DEFAULT");
  alter->add_option("--add-metric", args->metrics, "A further metric; may be repeated")
      ->type_name("NAME[:KIND]")
      ->allow_extra_args(false);
  TakeDuration(alter->add_option("--retention", args->retention_ms, "Age at which points expire; 0: never"));
  CLI::Option* rollup =
      alter
          ->add_option(
              "--rollup", args->rollups,
              "A roll-up that the report is to have: the segment keys that are kept, and the step. May be "
              "repeated; those that are not named are removed")
          ->type_name("KEY,KEY@STEP")
          ->allow_extra_args(false);
  alter->add_flag("--no-rollups", args->no_rollups, "Remove all roll-ups")->excludes(rollup);
  alter->footer(
      R"(A roll-up has sums over the segment keys that are left out and over longer steps. Queries use it where it says the same
as the points. kv report rollup makes it.

Examples:
  kv report alter flights --add-key dest=? --add-metric planes:distinct
  kv report alter flights --rollup carrier@1d --rollup @1h)");
  alter->callback([args, &globals] {
    reports::ReportChange change{.retention_ms = args->retention_ms};
    if (!args->key.empty()) {
      change.add_key = OrWrongUsage("--add-key", ParseSegmentKey(args->key));
      if (!change.add_key->default_value) {
        WrongUsage("--add-key",
                   absl::InvalidArgumentError(fmt::format(
                       "'{0}': the points that are there need a default: {0}=DEFAULT", args->key)));
      }
    }
    for (const std::string& metric : args->metrics) {
      change.add_metrics.push_back(OrWrongUsage("--add-metric", ParseMetric(metric)));
    }
    if (args->no_rollups || !args->rollups.empty()) change.rollups.emplace();
    for (const std::string& rollup_text : args->rollups) {
      change.rollups->push_back(OrWrongUsage("--rollup", ParseRollup(rollup_text)));
    }
    if (!change.add_key && change.add_metrics.empty() && !change.retention_ms && !change.rollups) {
      WrongUsage("change", absl::InvalidArgumentError(
                               "name one: --add-key, --add-metric, --retention, --rollup or --no-rollups"));
    }
    const ReportStore reports(globals, args->options.dataset);
    OrFail(reports->Alter(args->options.name, change));
    PrintReportDone(globals, fmt::format("altered {}", args->options.name));
  });
}

void AddDrop(CLI::App& group, Globals& globals) {
  struct Arguments {
    ReportOptions options;
    bool yes = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* drop = group.add_subcommand("drop", "Remove a report with all of its points, for good");
  args->options.AddTo(*drop);
  drop->add_flag("--yes", args->yes, "Do it; without this nothing is removed");
  drop->footer("Example: kv report drop flights --yes");
  drop->callback([args, &globals] {
    const ReportStore reports(globals, args->options.dataset);
    OrFail(reports->Info(args->options.name, {}).status());
    if (!args->yes) {
      throw Failure{absl::FailedPreconditionError(fmt::format(
          "this would remove report {} with all of its points for good; nothing was removed; say --yes "
          "to do it",
          args->options.name))};
    }
    OrFail(reports->Drop(args->options.name));
    PrintReportDone(globals, fmt::format("dropped {}", args->options.name));
  });
}

}  // namespace

void AddReportSettingsCommands(CLI::App& group, Globals& globals) {
  AddCreate(group, globals);
  AddAlter(group, globals);
  AddDrop(group, globals);
}

}  // namespace kvstore::cli
