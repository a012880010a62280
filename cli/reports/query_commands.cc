#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "charts/line_chart.h"
#include "cli/escape.h"
#include "cli/reports/query_arguments.h"
#include "cli/reports/query_pictures.h"
#include "cli/reports/query_text.h"
#include "cli/reports/report_command.h"
#include "cli/table.h"
#include "reports/json_query.h"
#include "reports/json_times.h"

/// kv report query, top.
namespace kvstore::cli {
namespace {

int64_t Now() { return static_cast<int64_t>(WallClockMs()); }

/// Returns the answer of query_report (docs/json-lines.md).
Json AnswerToJson(const reports::Query& query, const reports::QueryResult& result) {
  Json answer = reports::ResultToJson(query, result);
  answer["ok"] = true;
  return answer;
}

void TellMissing(const reports::QueryResult& result) {
  for (const std::string& missing : result.missing) PrintErr("this is not in the answer: {}\n", missing);
}

struct QueryCommand {
  QueryArguments query;
  bool csv = false;
  bool chart = false;
  std::string svg;
};

void RunQueryCommand(const QueryCommand& args, const Globals& globals) {
  const reports::Query query = args.query.ToQuery(Now());
  const auto wrong = [](const char* option, const char* problem) {
    WrongUsage(option, absl::InvalidArgumentError(problem));
  };
  if ((args.csv || args.chart) && globals.json) wrong(args.csv ? "--csv" : "--chart", "not with --json");
  if (args.csv && query.explain)
    wrong("--explain", "not with --csv, which has values alone; --json has both");
  if (args.chart && !query.step) wrong("--chart", "draws values over time: name their --step");
  if (!args.svg.empty() && !query.step) wrong("--svg", "draws values over time: name their --step");
  const ReportStore reports(globals, args.query.source.options.dataset);
  const reports::QueryResult result = OrFail(reports->Run(query));
  if (!args.svg.empty()) {
    OrFail(ReplaceFile(std::filesystem::absolute(args.svg), charts::ToSvg(LinesOf(query, result))));
  }
  if (globals.json) {
    PrintJson(AnswerToJson(query, result));
    return;
  }
  TellMissing(result);
  if (args.csv) {
    PrintCsv(query, result);
  } else if (args.chart) {
    WriteOut(BlockChart(query, result, TerminalWidth()));
  } else if (!args.svg.empty()) {
    Print("drew {} series in {}\n", result.series.size(), args.svg);
  } else {
    PrintTable(query, result);
  }
  if (query.explain) {
    Print("\n");
    PrintCost(result);
  }
}

constexpr char kQueryFooter[] =
    R"(TIME is a date (2013-01-31, midnight in --zone), RFC 3339 (2013-01-31T05:00:00Z), milliseconds since 1970, now, today,
yesterday, or a stretch of time before now: -7d, -36h. Steps are ms, s, m, h, d, w (from Monday), mo and y; days and
more are of the calendar in --zone, so that a day may have 23 or 25 hours.

Up to eight series stand side by side. With --compare, each value has beside it the one of the same place in the
calendar: of 5 March, that of 5 February (-1mo); of 09:00, that of 09:00 (-1d), also where clocks were changed; of a
week, that of the week that begins nearest (-1y). A step without such a place, as 31 March, stands alone, and values of
the other time that no step is compared with are in --json only. There is no interpolation: a step without points is
left out unless --fill says otherwise. A \ in front of , ; = : or * in a condition takes the character as it is.

Examples:
  kv report query flights departures --from 2013-01-01 --to 2013-02-01 --step 1d --by origin
  kv report query flights departures --step 1h --from yesterday --to today --zone America/New_York --chart
  kv report query flights --as 'share=late / departures' --from -7d --step 1d --where carrier=UA,AA --compare -7d
  kv report query flights delay --function p99 --by carrier --from 2013-01-01 --to 2014-01-01 --step 1mo --svg d.svg
  kv report query flights departures --filter 'united:carrier=UA;origin=*' --filter others:carrier=AA,B6 --csv)";

void AddQuery(CLI::App& group, Globals& globals) {
  auto args = std::make_shared<QueryCommand>();
  CLI::App* query = group.add_subcommand("query", "Ask for metrics over time, by segments");
  args->query.AddTo(*query);
  CLI::Option* csv = query->add_flag("--csv", args->csv, "Print CSV, with exact numbers");
  CLI::Option* chart = query->add_flag("--chart", args->chart, "Draw a line of characters for each series");
  CLI::Option* svg =
      query->add_option("--svg", args->svg, "Draw a picture into this file")->type_name("FILE");
  csv->excludes(chart);
  svg->excludes(csv)->excludes(chart);
  query->footer(kQueryFooter);
  query->callback([args, &globals] { RunQueryCommand(*args, globals); });
}

struct TopCommand {
  QuerySource source;
  std::string metric;
  std::vector<std::string> by;
  uint64_t number = 10;
  std::string function = "sum";
};

/// The one value of a series that was asked for without steps.
std::optional<reports::Number> ValueOf(const reports::ResultSeries& series) {
  if (series.points.empty()) return std::nullopt;
  return series.points.front().second;
}

/// The value of the whole of a filter, in an answer without groups.
std::optional<reports::Number> WholeOf(const reports::QueryResult& whole, const std::string& filter) {
  for (const reports::ResultSeries& series : whole.series) {
    if (series.filter == filter) return ValueOf(series);
  }
  return std::nullopt;
}

std::string ShareText(const reports::Number& value, const std::optional<reports::Number>& whole) {
  if (!whole || whole->AsReal() == 0) return "-";
  return fmt::format("{:.1f} %", value.AsReal() / whole->AsReal() * 100);
}

void PrintTop(const reports::Query& query, const reports::QueryResult& result,
              const std::optional<reports::QueryResult>& whole) {
  std::vector<std::string> heading;
  const bool filters = !query.filters.empty() && !query.filters.front().name.empty();
  if (filters) heading.emplace_back("FILTER");
  for (const std::string& key : query.group_by) heading.push_back(Printable(key, Lines::kOne));
  heading.emplace_back("VALUE");
  if (whole) heading.emplace_back("SHARE");
  Table table(std::move(heading));
  for (const reports::ResultSeries& series : result.series) {
    const auto value = ValueOf(series);
    if (!value) continue;
    std::vector<std::string> row;
    if (filters) row.push_back(series.filter);
    for (const auto& [key, segment] : series.segments) row.push_back(segment);
    row.push_back(NumberText(*value));
    if (whole) row.push_back(ShareText(*value, WholeOf(*whole, series.filter)));
    table.Add(std::move(row));
  }
  table.Print();
}

void RunTop(const TopCommand& args, const Globals& globals) {
  reports::Query query;
  args.source.Read(Now(), query);
  query.metrics.push_back({.name = args.metric, .expression = ""});
  query.group_by = args.by;
  query.function =
      OrWrongUsage("--function", reports::ParseFunction("'" + args.function + "'", args.function));
  query.top = reports::QueryTop{.n = args.number, .by = query.function};
  const ReportStore reports(globals, args.source.options.dataset);
  const reports::QueryResult result = OrFail(reports->Run(query));
  // Only sums and counts of parts add up to that of the whole.
  std::optional<reports::QueryResult> whole;
  if (query.function.kind == reports::Function::Kind::kSum ||
      query.function.kind == reports::Function::Kind::kCount) {
    reports::Query all = query;
    all.group_by.clear();
    all.top.reset();
    whole = OrFail(reports->Run(all));
  }
  if (!globals.json) {
    PrintTop(query, result, whole);
    return;
  }
  Json answer = AnswerToJson(query, result);
  if (whole) {
    for (const reports::ResultSeries& series : whole->series) {
      const auto value = ValueOf(series);
      Json total = {{"value", value ? reports::NumberToJson(*value) : Json(nullptr)}};
      if (!series.filter.empty()) total["filter"] = series.filter;
      answer["totals"].push_back(std::move(total));
    }
  }
  PrintJson(answer);
}

void AddTop(CLI::App& group, Globals& globals) {
  auto args = std::make_shared<TopCommand>();
  CLI::App* top = group.add_subcommand("top", "Show the segment values with the greatest values of a metric");
  top->add_option("report", args->source.options.name, "Name of the report")->required();
  top->add_option("metric", args->metric, "The metric")->required();
  top->add_option("--by", args->by, "The segment key; may be repeated, for combinations")
      ->type_name("KEY")
      ->required()
      ->allow_extra_args(false);
  top->add_option("-n,--number", args->number, "How many are shown")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  top->add_option("--function", args->function,
                  "What is made of the points: sum, count, avg, min, max, p99, distinct")
      ->capture_default_str();
  args->source.AddTo(*top);
  top->footer(
      R"(The share of a sum or a count is that of all segment values together, of which those that are not shown are a part, too.
TIME and conditions are as in kv report query.

Example:
  kv report top flights departures --by origin -n 10 --from 2013-01-01 --to 2014-01-01)");
  top->callback([args, &globals] { RunTop(*args, globals); });
}

}  // namespace

void AddReportQueryCommands(CLI::App& group, Globals& globals) {
  AddQuery(group, globals);
  AddTop(group, globals);
}

}  // namespace kvstore::cli
