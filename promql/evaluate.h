#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "json/json.h"
#include "promql/parse.h"
#include "reports/reports.h"

namespace kvstore::promql {

/// The times at which a query is evaluated.
struct Times {
  int64_t start_ms = 0;
  int64_t end_ms = 0;              ///< Inclusive.
  std::optional<int64_t> step_ms;  ///< Nothing: once, at the end.
};

/// Has a report answer a query, and returns the field "data" of the answer in Prometheus' form: a matrix, or
/// a vector where there is no step.
///
/// The times are the multiples of the step since 1970 from the start to the end. The value at a time is made
/// of the points of the step before it, [time - step, time); of the range where the query has one, which must
/// be as long as the step then; without either of the five minutes before. A sum over series is one over
/// these points, too. A count of a metric of kind distinct is how many different members its sets have
/// together; nothing else can be asked of one. INVALID_ARGUMENT names what is wrong.
absl::StatusOr<Json> Evaluate(reports::Reports& reports, const Expression& expression, const Times& times);

/// Returns the names of all series, REPORT:METRIC, at most so many; of one report if that is named.
absl::StatusOr<Json> SeriesNames(reports::Reports& reports, const std::optional<std::string>& report,
                                 size_t most);

/// NOT_FOUND or INVALID_ARGUMENT unless there are the report, the metric and the segment keys of a selector.
absl::Status CheckSeries(reports::Reports& reports, const Selector& selector);

/// Returns the segment keys of a report, or of all that the caller may read.
absl::StatusOr<Json> LabelNames(reports::Reports& reports, const std::optional<std::string>& report);

/// Returns the values that a segment key has had, in a report or in all.
absl::StatusOr<Json> LabelValues(reports::Reports& reports, const std::optional<std::string>& report,
                                 const std::string& key);

/// Returns the series that match a selector and have points from the start to the end, both inclusive, each
/// as its labels.
absl::StatusOr<Json> SeriesOf(reports::Reports& reports, const Selector& selector, const Times& times);

/// Returns a number as Prometheus writes it: "42", "0.1", "NaN", "+Inf".
std::string ValueText(const reports::Number& number);

}  // namespace kvstore::promql
