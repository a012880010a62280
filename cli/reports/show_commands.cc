#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/escape.h"
#include "cli/reports/report_command.h"
#include "cli/table.h"
#include "reports/steps.h"

/// kv report list, show.
namespace kvstore::cli {
namespace {

struct ShowArguments {
  ReportOptions options;
  std::vector<std::string> metrics;
  size_t limit = 100;
};

bool IsPattern(const std::string& name) { return name.find_first_of("*?[") != std::string::npos; }

bool FitsOne(const std::vector<std::string>& patterns, const std::string& metric) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return pattern == metric || ::fnmatch(pattern.c_str(), metric.c_str(), 0) == 0;
  });
}

/// The characters that all names begin with which fit one of the patterns.
std::string CommonPrefix(const std::vector<std::string>& patterns) {
  std::string common = patterns.front();
  for (const std::string& pattern : patterns) {
    const std::string literal = pattern.substr(0, pattern.find_first_of("*?[\\"));
    const auto differs = std::mismatch(common.begin(), common.end(), literal.begin(), literal.end());
    common.erase(differs.first, common.end());
  }
  return common;
}

/// Finds the metrics that fit, of which the first are kept in `kept`, as many as the limit says. Returns how
/// many others fit.
size_t FindMetrics(const ReportStore& reports, const ShowArguments& args,
                   std::vector<reports::Metric>& kept) {
  reports::MetricListing listing{.prefix = CommonPrefix(args.metrics), .limit = reports::kMaxListedMetrics};
  size_t beyond = 0;
  while (true) {
    reports::MetricPage page = OrFail(reports->ListMetrics(args.options.name, listing));
    if (page.more) listing.after = page.metrics.back().name;
    for (reports::Metric& metric : page.metrics) {
      if (!FitsOne(args.metrics, metric.name)) continue;
      if (kept.size() < args.limit) {
        kept.push_back(std::move(metric));
      } else {
        ++beyond;
      }
    }
    if (!page.more) return beyond;
  }
}

/// The report with the metrics that fit, and how many of these go beyond the limit, which are left out.
std::pair<reports::ReportDescription, size_t> Describe(const ReportStore& reports,
                                                       const ShowArguments& args) {
  if (std::any_of(args.metrics.begin(), args.metrics.end(), IsPattern)) {
    reports::ReportDescription report =
        OrFail(reports->Describe(args.options.name, std::vector<std::string>()));
    const size_t beyond = FindMetrics(reports, args, report.info.metrics);
    return {std::move(report), beyond};
  }
  reports::ReportDescription report = OrFail(reports->Describe(args.options.name, args.metrics));
  std::vector<reports::Metric>& metrics = report.info.metrics;
  for (const std::string& name : args.metrics) {
    if (report.info.FindMetric(name) != nullptr) continue;
    throw Failure{
        absl::NotFoundError(fmt::format("metrics: report '{}' has no metric '{}'", report.info.name, name))};
  }
  const size_t beyond = metrics.size() - std::min(metrics.size(), args.limit);
  metrics.resize(metrics.size() - beyond);
  return {std::move(report), beyond};
}

std::string LengthText(uint64_t ms, const char* zero) { return ms == 0 ? zero : reports::StepText(ms); }

/// The answer of report_info (docs/json-lines.md).
Json ToJson(const reports::ReportDescription& report, size_t beyond) {
  Json keys = Json::array();
  for (const reports::SegmentKey& key : report.info.keys) {
    Json json = {{"name", key.name}};
    if (key.default_value) json["default"] = *key.default_value;
    keys.push_back(std::move(json));
  }
  Json metrics = Json::array();
  for (const reports::Metric& metric : report.info.metrics) {
    metrics.push_back({{"name", metric.name}, {"kind", std::string(reports::Name(metric.kind))}});
  }
  Json rollups = Json::array();
  for (const reports::Rollup& rollup : report.info.rollups) {
    rollups.push_back({{"keys", rollup.keys}, {"step", reports::StepText(rollup.step_ms)}});
  }
  const reports::ReportSettings& settings = report.info.settings;
  return {{"ok", true},
          {"report", report.info.name},
          {"segment_keys", std::move(keys)},
          {"segment_values", report.segment_values},
          {"metrics", std::move(metrics)},
          {"metrics_left_out", beyond},
          {"rollups", std::move(rollups)},
          {"resolution", reports::StepText(settings.resolution_ms)},
          {"period", reports::StepText(settings.period_s * 1000)},
          {"salts", settings.salts},
          {"retention", LengthText(settings.retention_ms, "0")}};
}

void PrintDescription(const reports::ReportDescription& report, size_t beyond, const ShowArguments& args) {
  const reports::ReportSettings& settings = report.info.settings;
  Table table({"SETTING", "VALUE"});
  table.Add({"report", report.info.name});
  table.Add({"resolution", reports::StepText(settings.resolution_ms)});
  table.Add({"period of a row", reports::StepText(settings.period_s * 1000)});
  table.Add({"salts", fmt::format("{}", settings.salts)});
  table.Add({"points expire after", LengthText(settings.retention_ms, "never")});
  table.Print();
  Print("\n");
  Table keys({"SEGMENT KEY", "DEFAULT", "VALUES"});
  for (const reports::SegmentKey& key : report.info.keys) {
    const auto values = report.segment_values.find(key.name);
    keys.Add({key.name, key.default_value ? fmt::format("'{}'", *key.default_value) : "-",
              fmt::format("{}", values == report.segment_values.end() ? 0 : values->second.size())});
  }
  keys.Print();
  if (!report.info.rollups.empty()) {
    Print("\n");
    Table rollups({"ROLL-UP BY", "STEP"});
    for (const reports::Rollup& rollup : report.info.rollups) {
      rollups.Add({rollup.keys.empty() ? "(no key)" : fmt::format("{}", fmt::join(rollup.keys, ", ")),
                   reports::StepText(rollup.step_ms)});
    }
    rollups.Print();
  }
  Print("\n");
  if (args.metrics.empty()) {
    Print("metrics are not read unless you name some: --metrics NAME, or --metrics '*' for all\n");
    return;
  }
  Table metrics({"METRIC", "KIND"});
  for (const reports::Metric& metric : report.info.metrics) {
    metrics.Add({metric.name, std::string(reports::Name(metric.kind))});
  }
  metrics.Print();
  if (beyond > 0) Print("and {} more: --limit {}\n", beyond, report.info.metrics.size() + beyond);
}

void AddShow(CLI::App& group, Globals& globals) {
  auto args = std::make_shared<ShowArguments>();
  CLI::App* show =
      group.add_subcommand("show", "Show settings, segment keys, roll-ups and metrics of a report");
  args->options.AddTo(*show);
  show->add_option(
          "--metrics", args->metrics,
          "Metrics to show: a name, or a pattern with * and ?; may be repeated. Names are read alone; for a "
          "pattern the names of all metrics are read that begin as it does")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  show->add_option("--limit", args->limit, "The most metrics that are shown")->capture_default_str();
  show->footer(
      R"(A report may have a million metrics, so none is read that is not asked for. --json has the values of the segment keys.

Examples:
  kv report show flights --metrics departures
  kv report show flights --metrics 'delay*' --limit 20)");
  show->callback([args, &globals] {
    const ReportStore reports(globals, args->options.dataset);
    const auto [report, beyond] = Describe(reports, *args);
    if (globals.json) {
      PrintJson(ToJson(report, beyond));
    } else {
      PrintDescription(report, beyond, *args);
    }
  });
}

void AddList(CLI::App& group, Globals& globals) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* list = group.add_subcommand("list", "List the reports of a dataset");
  options->AddDataset(*list);
  list->footer("Example: kv report list");
  list->callback([options, &globals] {
    const ReportStore reports(globals, options->dataset);
    const std::vector<std::string> names = OrFail(reports->List());
    if (globals.json) {
      PrintJson({{"ok", true}, {"reports", names}});
      return;
    }
    Table table({"REPORT"});
    for (const std::string& name : names) table.Add({name});
    table.Print();
  });
}

}  // namespace

void AddReportShowCommands(CLI::App& group, Globals& globals) {
  AddList(group, globals);
  AddShow(group, globals);
}

}  // namespace kvstore::cli
