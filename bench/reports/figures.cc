#include "bench/reports/figures.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace kvstore::bench {

std::optional<bool> Met(const ReportsReport& report, const ReportsFigure& figure) {
  if (!figure.bar || (report.options.size < 1 && !figure.bar->any_size)) return std::nullopt;
  return figure.bar->side == FigureBar::Side::kAtLeast ? figure.value >= figure.bar->limit
                                                       : figure.value <= figure.bar->limit;
}

Json ToJson(const ReportsReport& report) {
  Json figures = Json::array();
  for (const ReportsFigure& figure : report.figures) {
    Json one = {{"figure", figure.name}, {"value", figure.value}, {"unit", figure.unit}};
    if (figure.bar)
      one[figure.bar->side == FigureBar::Side::kAtLeast ? "at_least" : "at_most"] = figure.bar->limit;
    if (const auto met = Met(report, figure)) one["met"] = *met;
    figures.push_back(std::move(one));
  }
  Json json = {{"ok", true},
               {"workload", "reports"},
               {"size", report.options.size},
               {"threads", report.options.threads},
               {"rounds", report.options.rounds},
               {"cores", report.cores},
               {"cpu", report.cpu},
               {"figures", std::move(figures)}};
  if (!report.duckdb_version.empty()) json["duckdb"] = report.duckdb_version;
  return json;
}

}  // namespace kvstore::bench
