#include "cli/reports/report_command.h"

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/escape.h"
#include "client/reports.h"
#include "reports/json_operations.h"

/// kv report: the group of commands.
namespace kvstore::cli {

void ReportOptions::AddDataset(CLI::App& command) {
  dataset = reports::kDefaultDataset;
  command.add_option("--dataset", dataset, "Dataset of rows that has the reports")->capture_default_str();
}

void ReportOptions::AddTo(CLI::App& command) {
  command.add_option("report", name, "Name of the report")->required();
  AddDataset(command);
}

ReportStore::ReportStore(const Globals& globals, const std::string& dataset, bool create_if_missing) {
  if (!globals.server.empty()) {
    reports_ = OrFail(client::ConnectReports(globals.server, globals.ServerConnection(), dataset));
    return;
  }
  store_ = globals.OpenStore(create_if_missing);
  reports_ = reports::LocalReports(*store_, dataset);
}

void PrintReportDone(const Globals& globals, const std::string& done) {
  if (globals.json) {
    PrintJson({{"ok", true}});
  } else {
    Print("{}\n", done);
  }
}

void AddReportCommands(CLI::App& app, Globals& globals) {
  CLI::App* group = app.add_subcommand(
      "report", "Time series: metrics by segments over time, loaded in batches and queried for charts");
  group->require_subcommand(1);
  group->fallthrough();
  AddReportSettingsCommands(*group, globals);
  AddReportShowCommands(*group, globals);
  AddReportLoadCommand(*group, globals);
  AddReportQueryCommands(*group, globals);
  AddReportUpkeepCommands(*group, globals);
  group->footer(
      R"(A report follows metrics (departures) by segments (carrier=UA, origin=EWR) over time. docs/reports.md is a tutorial.

Examples:
  kv report create flights --key carrier --key origin --metric departures --resolution 1h
  kv report load flights departures.csv
  kv report query flights departures --from 2013-01-01 --to 2013-02-01 --step 1d --by origin --chart)");
}

}  // namespace kvstore::cli
