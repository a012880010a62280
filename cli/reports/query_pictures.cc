#include "cli/reports/query_pictures.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "charts/block_line.h"
#include "cli/amounts.h"
#include "cli/command.h"
#include "cli/escape.h"
#include "cli/reports/moments.h"
#include "cli/reports/query_steps.h"
#include "cli/reports/query_text.h"

namespace kvstore::cli {
namespace {

using reports::Number;
using reports::Query;
using reports::QueryResult;
using reports::ResultSeries;

constexpr size_t kDefaultWidth = 80;
constexpr size_t kMaxWidth = 1000;
constexpr size_t kLeastBlocks = 10;
constexpr size_t kMaxTimeMarks = 9;

/// A line of a picture.
struct Drawn {
  std::string name;
  StepValues values;
};

/// Writes the distance of a comparison as it was given: "-7d".
std::string CompareText(const Query& query) {
  const auto length = reports::FixedLength(*query.compare_step);
  const std::string step = length ? reports::StepText(static_cast<uint64_t>(*length))
                                  : fmt::format("{}mo", query.compare_step->count);
  return (query.compare_sign < 0 ? "-" : "+") + step;
}

std::vector<Drawn> DrawnLines(const Query& query, const QueryResult& result, const QuerySteps& steps) {
  std::vector<Drawn> lines;
  for (const ResultSeries& series : result.series) {
    const std::string name = SeriesName(query, series);
    lines.push_back({name, steps.Values(series)});
    if (series.compared)
      lines.push_back({fmt::format("{} {}", name, CompareText(query)), steps.Compared(series)});
  }
  return lines;
}

/// Characters, not bytes.
size_t Width(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

void Pad(std::string& text, size_t width) { text.append(width - std::min(width, Width(text)), ' '); }

std::string RangeText(const StepValues& values) {
  std::optional<Number> least;
  std::optional<Number> greatest;
  for (const std::optional<Number>& value : values) {
    if (!value) continue;
    if (!least || reports::Less(*value, *least)) least = value;
    if (!greatest || reports::Less(*greatest, *value)) greatest = value;
  }
  if (!least) return "no points";
  return *least == *greatest ? NumberText(*least)
                             : fmt::format("{} to {}", NumberText(*least), NumberText(*greatest));
}

/// Returns at most kMaxTimeMarks places on the axis of time, where round stretches of time begin.
std::vector<charts::LineChart::Mark> TimeMarks(const Query& query, int64_t from, int64_t to) {
  constexpr std::array<std::pair<const char*, const char*>, 24> kSteps = {
      {{"1ms", "%H:%M:%E3S"}, {"10ms", "%H:%M:%E3S"}, {"100ms", "%H:%M:%E3S"}, {"1s", "%H:%M:%S"},
       {"10s", "%H:%M:%S"},   {"1m", "%H:%M"},        {"5m", "%H:%M"},         {"15m", "%H:%M"},
       {"1h", "%H:%M"},       {"3h", "%m-%d %H:%M"},  {"6h", "%m-%d %H:%M"},   {"12h", "%m-%d %H:%M"},
       {"1d", "%Y-%m-%d"},    {"2d", "%Y-%m-%d"},     {"1w", "%Y-%m-%d"},      {"2w", "%Y-%m-%d"},
       {"1mo", "%Y-%m"},      {"2mo", "%Y-%m"},       {"3mo", "%Y-%m"},        {"6mo", "%Y-%m"},
       {"1y", "%Y"},          {"5y", "%Y"},           {"20y", "%Y"},           {"100y", "%Y"}}};
  std::vector<charts::LineChart::Mark> marks;
  for (const auto& [step, format] : kSteps) {
    const auto grid =
        reports::StepGrid::Make(*reports::ParseStep(step), query.zone, from, to + 1, kMaxTimeMarks);
    if (!grid.ok()) continue;
    for (size_t i = 0; i < grid->size(); ++i) {
      // The first may begin before the picture does.
      if (grid->start(i) < from) continue;
      marks.push_back({static_cast<double>(grid->start(i)),
                       absl::FormatTime(format, absl::FromUnixMillis(grid->start(i)), query.zone)});
    }
    break;
  }
  return marks;
}

}  // namespace

size_t TerminalWidth() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* const columns = std::getenv("COLUMNS");
  return columns == nullptr ? kDefaultWidth : ParseWhole(columns, kMaxWidth).value_or(kDefaultWidth);
}

std::string BlockChart(const Query& query, const QueryResult& result, size_t width) {
  const QuerySteps steps(query);
  const std::vector<Drawn> lines = DrawnLines(query, result, steps);
  if (lines.empty() || steps.size() == 0) return "(none)\n";
  size_t name_width = 0;
  size_t range_width = 0;
  for (const Drawn& line : lines) {
    name_width = std::max(name_width, Width(line.name));
    range_width = std::max(range_width, Width(RangeText(line.values)));
  }
  const size_t beside = name_width + range_width + 4;
  const size_t blocks = std::max(kLeastBlocks, width > beside ? width - beside : 0);
  std::string chart;
  for (const Drawn& line : lines) {
    std::vector<std::optional<double>> values;
    for (const std::optional<Number>& value : line.values) {
      values.push_back(value ? std::optional<double>(value->AsReal()) : std::nullopt);
    }
    std::string text = line.name;
    Pad(text, name_width);
    std::string picture = charts::BlockLine(values, blocks);
    Pad(picture, std::min(blocks, steps.size()));
    chart += fmt::format("{}  {}  {}\n", text, picture, RangeText(line.values));
  }
  const std::vector<int64_t> ends = {steps.start(0), steps.start(steps.size() - 1)};
  const MomentFormat time(ends, query.zone);
  std::string indent;
  Pad(indent, name_width);
  return chart + fmt::format("{}  {} to {}, {} steps\n", indent, time(ends[0]), time(ends[1]), steps.size());
}

charts::LineChart LinesOf(const Query& query, const QueryResult& result) {
  const QuerySteps steps(query);
  const std::vector<Drawn> lines = DrawnLines(query, result, steps);
  if (lines.size() > kMaxDrawnLines) {
    throw Failure{absl::InvalidArgumentError(fmt::format(
        "--svg: the answer has {} lines, and a picture at most {}; ask for fewer with --top, --where or "
        "fewer --by",
        lines.size(), kMaxDrawnLines))};
  }
  std::vector<std::string> metrics;
  for (const reports::QueryMetric& metric : query.metrics) metrics.push_back(metric.name);
  charts::LineChart chart{
      .title = Printable(fmt::format("{}: {}", query.report, fmt::join(metrics, ", ")), Lines::kOne),
      .axis = query.zone.name()};
  if (steps.size() == 0) return chart;
  const int64_t from = steps.start(0);
  const int64_t to = std::max(steps.start(steps.size() - 1), from + 1);
  chart.begin = static_cast<double>(from);
  chart.end = static_cast<double>(to);
  chart.marks = TimeMarks(query, from, to);
  for (const Drawn& line : lines) {
    charts::LineChart::Line drawn{.name = line.name, .points = {}};
    for (size_t step = 0; step < steps.size(); ++step) {
      const std::optional<Number>& value = line.values[step];
      drawn.points.push_back({static_cast<double>(steps.start(step)),
                              value ? value->AsReal() : std::numeric_limits<double>::quiet_NaN()});
    }
    chart.lines.push_back(std::move(drawn));
  }
  return chart;
}

}  // namespace kvstore::cli
