#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "reports/query.h"
#include "reports/steps.h"

namespace kvstore::cli {

/// The values of a series, one for each step of the query.
using StepValues = std::vector<std::optional<reports::Number>>;

/// The steps of a query, which points of answers are put into, and with which step of the earlier (or later)
/// time each is compared: the one at the same place of the calendar. That is the step that begins the
/// comparison's distance before, in local time; or the nearest, if none begins there and it is less than half
/// a step away, as weeks begin on Mondays in each year. So 5 March is compared with 5 February, and 31 March
/// with nothing; an hour that clocks leave out has none, either. An hour that clocks repeat is compared twice
/// with the same one, and of two the first is taken. Immutable.
class QuerySteps {
 public:
  /// Throws Failure if there are more steps than the query may have.
  explicit QuerySteps(const reports::Query& query);

  size_t size() const { return steps_.size(); }
  int64_t start(size_t step) const { return steps_.start(step); }
  /// The start of the step that a step is compared with; nullopt where there is none.
  std::optional<int64_t> compared_start(size_t step) const;
  StepValues Values(const reports::ResultSeries& series) const;
  /// The values that Values is compared with, step by step.
  StepValues Compared(const reports::ResultSeries& series) const;

 private:
  reports::StepGrid steps_;
  reports::StepGrid compared_;
  std::vector<std::optional<size_t>> partners_;  // for each step one of compared_
};

}  // namespace kvstore::cli
