#include "cli/reports/query_arguments.h"

#include <fmt/format.h>

#include "cli/amounts.h"
#include "cli/arguments.h"
#include "cli/reports/filter_text.h"
#include "cli/reports/moments.h"

namespace kvstore::cli {
namespace {

constexpr uint64_t kMaxTop = 100'000;

/// "rate=late / departures"
absl::StatusOr<reports::QueryMetric> ParseExpression(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return absl::InvalidArgumentError(
        fmt::format("'{}': give NAME=EXPRESSION: rate=late / departures", text));
  }
  return reports::QueryMetric{.name = text.substr(0, equals), .expression = text.substr(equals + 1)};
}

/// "10", or "10:max"
absl::StatusOr<reports::QueryTop> ParseTop(const std::string& text, const reports::Function& function) {
  const size_t colon = text.find(':');
  const auto n = ParseWhole(std::string_view(text).substr(0, colon), kMaxTop);
  if (!n.ok()) return n.status();
  if (*n == 0) return absl::InvalidArgumentError("'0': at least one series must be asked for");
  reports::QueryTop top{.n = *n, .by = function};
  if (colon == std::string::npos) return top;
  const auto by = reports::ParseFunction(fmt::format("'{}'", text), std::string_view(text).substr(colon + 1));
  if (!by.ok()) return by.status();
  top.by = *by;
  return top;
}

/// "-7d": the sign and the stretch.
void ReadCompare(const std::string& text, reports::Query& query) {
  const bool sign = text.starts_with('-') || text.starts_with('+');
  const auto step = reports::ParseStep(sign ? std::string_view(text).substr(1) : std::string_view());
  if (!step.ok()) {
    WrongUsage("--compare", absl::InvalidArgumentError(fmt::format(
                                "'{}': give a sign and a stretch of time: -7d, -1mo, -1y", text)));
  }
  query.compare_step = *step;
  query.compare_sign = text.front() == '-' ? -1 : 1;
}

}  // namespace

void QuerySource::AddTo(CLI::App& command) {
  options.AddDataset(command);
  command.add_option("--from", from, "The first time that counts")->type_name("TIME")->capture_default_str();
  command.add_option("--to", to, "The first time that does not count any more")
      ->type_name("TIME")
      ->capture_default_str();
  command.add_option("--zone", zone, "Time zone of dates, days and months: Europe/Berlin")
      ->type_name("ZONE")
      ->capture_default_str();
  command
      .add_option("--where", where,
                  "Only series with one of these segment values; may be repeated, for other keys")
      ->type_name("KEY=VALUE,VALUE")
      ->allow_extra_args(false);
  command
      .add_option(
          "--filter", filters,
          "As --where, with a name: each filter has series of its own. May be repeated, up to 1,000 times")
      ->type_name("NAME:KEY=VALUE,VALUE;KEY=VALUE")
      ->allow_extra_args(false);
}

void QuerySource::Read(int64_t now, reports::Query& query) const {
  query.report = options.name;
  query.zone = OrWrongUsage("--zone", reports::LoadZone(zone));
  query.from = OrWrongUsage("--from", ParseMoment(from, now, query.zone));
  query.to = OrWrongUsage("--to", ParseMoment(to, now, query.zone));
  if (query.from > query.to) {
    WrongUsage("--to", absl::InvalidArgumentError(fmt::format("{} is before --from, which is {}",
                                                              Rfc3339(query.to, query.zone),
                                                              Rfc3339(query.from, query.zone))));
  }
  const auto add = [](const char* option, const Where& more, Where& to_these) {
    if (const absl::Status added = AddWhere(more, to_these); !added.ok()) WrongUsage(option, added);
  };
  Where common;
  for (const std::string& text : where) add("--where", OrWrongUsage("--where", ParseWhere(text)), common);
  for (const std::string& text : filters) {
    query.filters.push_back(OrWrongUsage("--filter", ParseFilter(text)));
    add("--filter", common, query.filters.back().where);
  }
  if (query.filters.empty() && !common.empty())
    query.filters.push_back({.name = "", .where = std::move(common)});
}

void QueryArguments::AddTo(CLI::App& command) {
  command.add_option("report", source.options.name, "Name of the report")->required();
  command.add_option("metric", metrics, "The metrics");
  command
      .add_option("--as", expressions,
                  "A calculation with metrics, and its name: 'rate=late / departures'; may be "
                  "repeated")
      ->type_name("NAME=EXPRESSION")
      ->allow_extra_args(false);
  source.AddTo(command);
  command
      .add_option("--step", step,
                  "Length of the steps of the answer; without it there is one value for all of the time")
      ->type_name("15m|1h|1d|1w|1mo|1y");
  command.add_option("--by", by, "A series for each value of this segment key; may be repeated")
      ->type_name("KEY")
      ->allow_extra_args(false);
  command
      .add_option(
          "--function", function,
          "What is made of the points of a step: sum, count, avg, min, max, last, distinct, p50, p99.9")
      ->capture_default_str();
  command
      .add_option("--top", top,
                  "Only the N greatest series of each metric and filter, by this function of all the "
                  "time (--function if there is none)")
      ->type_name("N[:FUNCTION]");
  command
      .add_option("--fill", fill, "The value of a step without points: none, 0, or that of the step before")
      ->check(OneOf({"none", "zero", "previous"}))
      ->capture_default_str();
  command.add_option("--compare", compare, "Also ask for the same series so much earlier: -7d")
      ->type_name("-STEP");
  command.add_flag("--partial", partial, "Leave out what cannot be read, and name it, in place of failing");
  command.add_flag("--explain", explain, "Say what the answer cost: rows, chunks, bytes, by metric and salt");
}

reports::Query QueryArguments::ToQuery(int64_t now) const {
  reports::Query query;
  source.Read(now, query);
  for (const std::string& metric : metrics) query.metrics.push_back({.name = metric, .expression = ""});
  for (const std::string& text : expressions) {
    query.metrics.push_back(OrWrongUsage("--as", ParseExpression(text)));
  }
  if (query.metrics.empty()) {
    WrongUsage("metric", absl::InvalidArgumentError("name one, or a calculation with --as NAME=EXPRESSION"));
  }
  if (!step.empty()) query.step = OrWrongUsage("--step", reports::ParseStep(step));
  query.group_by = by;
  // The message names the function already.
  query.function = OrWrongUsage("--function", reports::ParseFunction("'" + function + "'", function));
  if (!top.empty()) query.top = OrWrongUsage("--top", ParseTop(top, query.function));
  query.fill = fill == "zero"       ? reports::Fill::kZero
               : fill == "previous" ? reports::Fill::kPrevious
                                    : reports::Fill::kNone;
  if (!compare.empty()) ReadCompare(compare, query);
  query.partial = partial;
  query.explain = explain;
  return query;
}

}  // namespace kvstore::cli
