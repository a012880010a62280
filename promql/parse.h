#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/aggregate.h"

namespace kvstore::promql {

/// Which series a query is about: visits:views{country=~"DE|FR"}[1d] offset 1w
struct Selector {
  std::string report;
  std::string metric;
  /// Segment key -> the values that match; nullopt: any.
  std::map<std::string, std::optional<std::vector<std::string>>> where;
  std::optional<int64_t> range_ms;
  int64_t offset_ms = 0;
};

/// A query in PromQL, as far as a report can answer it: topk(3, sum by (country)
/// (sum_over_time(visits:views[1d])))
struct Expression {
  Selector selector;
  reports::Function function;  ///< The function that is applied to the points of a step.
  /// A series for each combination of these keys' values; nullopt: for each one of all keys.
  std::optional<std::vector<std::string>> by;
  std::optional<uint64_t> top;
};

/// Reads a query. INVALID_ARGUMENT names the place and what is not understood there, and functions that are
/// not answered by their names.
///
/// The name of a series is REPORT:METRIC, divided at the first colon; what is no name in PromQL is given as
/// {__name__="my report:page views"}.
absl::StatusOr<Expression> Parse(std::string_view query);

/// Reads a sum of numbers, "1+1", with which tools ask whether anybody answers; nothing if it is none.
std::optional<double> ParseSum(std::string_view query);

/// Reads only a selector, as the parameter match[] has it. The report may be all that it names ("visits:").
absl::StatusOr<Selector> ParseSelector(std::string_view text);

/// Reads a stretch of time in PromQL: "5m", "1h30m", "500ms"; a day has 24 hours. INVALID_ARGUMENT otherwise.
absl::StatusOr<int64_t> ParseDurationMs(std::string_view text);

}  // namespace kvstore::promql
