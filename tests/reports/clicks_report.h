#pragma once

#include <optional>

#include "reports/report_types.h"

namespace kvstore::testing {

/// The report of most tests: "r" with one metric, clicks by country, with a point for every second at most.
///
/// settings  in place of periods of a day, each in one row.
inline reports::ReportInfo ClicksReport(const reports::ReportSettings& settings = {
                                            .resolution_ms = 1'000, .period_s = 86'400, .salts = 1}) {
  return {.name = "r",
          .settings = settings,
          .keys = {{"country", std::nullopt}},
          .metrics = {{.name = "clicks"}}};
}

}  // namespace kvstore::testing
