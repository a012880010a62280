#include "bench/commands/reports_command.h"

#include <fmt/format.h>

#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/reports/load_points.h"
#include "bench/reports/reports_bench.h"
#include "cli/escape.h"
#include "cli/table.h"

namespace kvstore::bench {

using cli::Globals;
using cli::OrFail;
using cli::PrintErr;
using cli::PrintJson;
using cli::Table;

namespace {

std::string NumberText(double value) {
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.2f}", value);
}

std::string BarText(const ReportsFigure& figure) {
  if (!figure.bar) return "";
  return (figure.bar->side == FigureBar::Side::kAtLeast ? ">= " : "<= ") + NumberText(figure.bar->limit);
}

void Print(const ReportsReport& report) {
  cli::Print("reports at size {}, embedded, {} threads a query, on {} cores, {}{}\n", report.options.size,
             report.options.threads, report.cores, report.cpu,
             report.duckdb_version.empty() ? "" : ", beside DuckDB " + report.duckdb_version);
  Table table({"FIGURE", "MEASURED", "UNIT", "BAR", "MET"});
  for (const ReportsFigure& figure : report.figures) {
    const auto met = Met(report, figure);
    table.Add({figure.name, NumberText(figure.value), figure.unit, BarText(figure),
               met ? (*met ? "yes" : "NO") : "-"});
  }
  table.Print();
  if (report.options.size < 1)
    cli::Print("Bars with '-' in the last column are those of a run with --size 1.\n");
}

}  // namespace

void AddReportsCommand(CLI::App& group, Globals& globals) {
  struct Arguments {
    ReportsOptions options;
    std::string files;
    std::vector<std::string> peers;
    DuckDbOptions duckdb;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* command = group.add_subcommand(
      "reports",
      "Measure time series on an embedded store: loading, bytes on disk, dashboards, whole metrics, large "
      "filters, roll-ups, a report with a million metrics, growth. Answers are compared with the points");
  command->add_option("--size", args->options.size, "Share of the points, metrics and series of a full run")
      ->check(CLI::Range(0.0001, 1.0))
      ->capture_default_str();
  command->add_option("--threads", args->options.threads, "Threads of a query, and of DuckDB")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--rounds", args->options.rounds, "How often each question is asked, at least")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      ->add_option("--parts", args->options.parts,
                   "Only these: load, disk, dashboard, whole, filter, rollups, chart, growth")
      ->delimiter(',')
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kReportsParts), std::end(kReportsParts))));
  command
      ->add_option(
          "--peers", args->peers,
          "duckdb: give DuckDB the same points and questions, by turns, and compare its answers, too")
      ->delimiter(',')
      ->check(CLI::IsMember({"duckdb"}));
  command->add_option(
      "--files", args->files,
      "Measure nothing; write five million points as points.csv and points.jsonl into this folder, to "
      "be loaded by kv report load");
  command->add_option("--python", args->duckdb.python, "Python with the packages duckdb and pyarrow")
      ->capture_default_str();
  command->add_option("--script", args->duckdb.script, "The script that speaks to DuckDB")
      ->capture_default_str();
  command->footer(
      "Example: kv bench reports --size 0.1 --parts load,disk,dashboard\n\n"
      "A full run takes some 4 GB of disk, with DuckDB 10 GB, and removes them at the end: the store is made "
      "under --data\nif that is given. ./dev bench reports installs DuckDB.");
  command->callback([args, &globals] {
    if (!args->files.empty()) {
      OrFail(WriteLoadFiles(PointSet{.report = "points", .countries = 50, .apps = 50, .genders = 5},
                            args->files));
      return;
    }
    args->options.dir = globals.data;
    if (!args->peers.empty()) args->options.duckdb = args->duckdb;
    const auto report =
        OrFail(BenchReports(args->options, [](const std::string& what) { PrintErr("{}\n", what); }));
    if (globals.json) {
      PrintJson(ToJson(report));
    } else {
      Print(report);
    }
  });
}

}  // namespace kvstore::bench
