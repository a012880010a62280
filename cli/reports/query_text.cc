#include "cli/reports/query_text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/reports/moments.h"
#include "cli/reports/query_steps.h"
#include "cli/table.h"

namespace kvstore::cli {
namespace {

using reports::Number;
using reports::Query;
using reports::QueryResult;
using reports::ResultSeries;

/// Series that stand side by side in a table.
constexpr size_t kSideBySide = 8;

bool HasFilterNames(const Query& query) {
  return std::any_of(query.filters.begin(), query.filters.end(),
                     [](const reports::QueryFilter& filter) { return !filter.name.empty(); });
}

std::string SegmentOf(const ResultSeries& series, const std::string& key) {
  for (const auto& [name, value] : series.segments) {
    if (name == key) return value;
  }
  return "";
}

MomentFormat FormatOf(const Query& query, const QuerySteps& steps) {
  std::vector<int64_t> times;
  for (size_t step = 0; step < steps.size(); ++step) times.push_back(steps.start(step));
  return MomentFormat(times, query.zone);
}

std::string TimeHeading(const Query& query) {
  return query.zone == absl::UTCTimeZone() ? "TIME" : "TIME, " + Printable(query.zone.name(), Lines::kOne);
}

std::string ValueText(const std::optional<Number>& value) { return value ? NumberText(*value) : "-"; }

/// By how much a value is greater than the one before, in per cent.
std::string ChangeText(const std::optional<Number>& value, const std::optional<Number>& before) {
  if (!value || !before || before->AsReal() == 0) return "-";
  return fmt::format("{:+.1f} %", (value->AsReal() - before->AsReal()) / std::abs(before->AsReal()) * 100);
}

void PrintSideBySide(const Query& query, const QueryResult& result, const QuerySteps& steps) {
  const MomentFormat time = FormatOf(query, steps);
  std::vector<std::string> heading = {TimeHeading(query)};
  std::vector<StepValues> values;
  for (const ResultSeries& series : result.series) {
    heading.push_back(SeriesName(query, series));
    values.push_back(steps.Values(series));
  }
  Table table(std::move(heading));
  for (size_t step = 0; step < steps.size(); ++step) {
    std::vector<std::string> row = {time(steps.start(step))};
    bool any = false;
    for (const StepValues& of_series : values) {
      row.push_back(ValueText(of_series[step]));
      any = any || of_series[step];
    }
    if (any) table.Add(std::move(row));
  }
  table.Print();
}

void PrintBelowEachOther(const Query& query, const QueryResult& result, const QuerySteps& steps) {
  const MomentFormat time = FormatOf(query, steps);
  const bool filters = HasFilterNames(query);
  std::vector<std::string> heading = {"METRIC"};
  if (filters) heading.emplace_back("FILTER");
  for (const std::string& key : query.group_by) heading.push_back(Printable(key, Lines::kOne));
  if (query.step) heading.push_back(TimeHeading(query));
  heading.emplace_back("VALUE");
  if (query.compare_step) heading.insert(heading.end(), {"BEFORE", "CHANGE"});
  Table table(std::move(heading));
  for (const ResultSeries& series : result.series) {
    const StepValues values = steps.Values(series);
    const StepValues compared = steps.Compared(series);
    for (size_t step = 0; step < steps.size(); ++step) {
      // A series without points has a line only where there are no steps.
      if (query.step && !values[step] && !compared[step]) continue;
      std::vector<std::string> row = {series.metric};
      if (filters) row.push_back(series.filter);
      for (const std::string& key : query.group_by) row.push_back(SegmentOf(series, key));
      if (query.step) row.push_back(time(steps.start(step)));
      row.push_back(ValueText(values[step]));
      if (query.compare_step) {
        row.insert(row.end(), {ValueText(compared[step]), ChangeText(values[step], compared[step])});
      }
      table.Add(std::move(row));
    }
  }
  table.Print();
}

/// A number with all of its digits; a real one is told from an integer.
std::string ExactText(const Number& number) {
  if (number.is_integer()) return fmt::format("{}", number.integer());
  std::string text = fmt::format("{}", number.real());
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string CsvField(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string field = "\"";
  for (const char c : text) {
    if (c == '"') field += '"';
    field += c;
  }
  return field + '"';
}

void PrintCsvLine(const std::vector<std::string>& fields) {
  static const bool kTerminal = ::isatty(STDOUT_FILENO) == 1;
  std::string line;
  for (const std::string& field : fields) {
    if (&field != &fields.front()) line += ',';
    line += CsvField(field);
  }
  WriteOut((kTerminal ? Printable(line, Lines::kOne) : line) + "\n");
}

}  // namespace

std::string NumberText(const Number& number) {
  if (number.is_integer()) return fmt::format("{}", number.integer());
  const double real = number.real();
  const double size = std::abs(real);
  if (size != 0 && (size < 1e-3 || size >= 1e15)) return fmt::format("{:.6g}", real);
  std::string text = fmt::format("{:.3f}", real);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string SeriesName(const Query& query, const ResultSeries& series) {
  std::vector<std::string> parts;
  if (query.metrics.size() > 1 || (series.filter.empty() && series.segments.empty()))
    parts.push_back(series.metric);
  if (!series.filter.empty()) parts.push_back(series.filter);
  for (const auto& [key, value] : series.segments) parts.push_back(value.empty() ? "''" : value);
  return Printable(fmt::format("{}", fmt::join(parts, ", ")), Lines::kOne);
}

void PrintTable(const Query& query, const QueryResult& result) {
  const QuerySteps steps(query);
  const size_t series = result.series.size();
  if (query.step && !query.compare_step && series > 0 && series <= kSideBySide) {
    PrintSideBySide(query, result, steps);
  } else {
    PrintBelowEachOther(query, result, steps);
  }
}

void PrintCsv(const Query& query, const QueryResult& result) {
  const QuerySteps steps(query);
  const bool filters = HasFilterNames(query);
  std::vector<std::string> heading = {"metric"};
  if (filters) heading.emplace_back("filter");
  heading.insert(heading.end(), query.group_by.begin(), query.group_by.end());
  heading.insert(heading.end(), {"time", "value"});
  if (query.compare_step) heading.insert(heading.end(), {"compared_time", "compared"});
  PrintCsvLine(heading);
  const auto time = [&](std::optional<int64_t> start) { return start ? Rfc3339(*start, query.zone) : ""; };
  const auto text = [](const std::optional<Number>& value) { return value ? ExactText(*value) : ""; };
  for (const ResultSeries& series : result.series) {
    const StepValues values = steps.Values(series);
    const StepValues compared = steps.Compared(series);
    for (size_t step = 0; step < steps.size(); ++step) {
      if (!values[step] && !compared[step]) continue;
      std::vector<std::string> row = {series.metric};
      if (filters) row.push_back(series.filter);
      for (const std::string& key : query.group_by) row.push_back(SegmentOf(series, key));
      row.insert(row.end(), {time(steps.start(step)), text(values[step])});
      if (query.compare_step) row.insert(row.end(), {time(steps.compared_start(step)), text(compared[step])});
      PrintCsvLine(row);
    }
  }
}

void PrintCost(const QueryResult& result) {
  Table table({"METRIC", "SALT", "ROWS", "CHUNKS READ", "SKIPPED", "BYTES", "FROM ROLL-UPS", "MS"});
  const auto add = [&](const std::string& metric, const std::string& salt, const reports::QueryCost& cost) {
    table.Add({metric, salt, fmt::format("{}", cost.rows), fmt::format("{}", cost.chunks),
               fmt::format("{}", cost.chunks_skipped), fmt::format("{}", cost.bytes),
               fmt::format("{}", cost.from_rollups), fmt::format("{:.1f}", cost.ms)});
  };
  for (const reports::PartCost& part : result.parts)
    add(part.metric, fmt::format("{}", part.salt), part.cost);
  add("(all)", "", result.cost);
  table.Print();
}

}  // namespace kvstore::cli
