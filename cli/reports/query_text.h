#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/query.h"

/// Answers of queries as text. What comes from a store is shown as cli/escape.h says; CSV is, too, where
/// standard output is a terminal.
namespace kvstore::cli {

/// The values of a series, one for each step of the query.
using StepValues = std::vector<std::optional<reports::Number>>;

/// The steps of a query, which points of answers are put into.
class QuerySteps {
 public:
  /// Throws Failure if there are more steps than the query may have.
  explicit QuerySteps(const reports::Query& query);

  size_t size() const { return steps_.size(); }
  int64_t start(size_t step) const { return steps_.start(step); }
  /// The start of the step that a step is compared with; nullopt where there is none, because a month has
  /// fewer days.
  std::optional<int64_t> compared_start(size_t step) const;
  StepValues Values(const reports::ResultSeries& series) const;
  /// The values that Values is compared with, step by step.
  StepValues Compared(const reports::ResultSeries& series) const;

 private:
  StepValues PutIntoSteps(const std::vector<reports::TimeValue>& points, const reports::StepGrid& grid) const;

  reports::StepGrid steps_;
  reports::StepGrid compared_;
};

/// Writes a number for people: real numbers with at most three digits behind the point.
std::string NumberText(const reports::Number& number);
/// Names a series by its filter and its segments: "united, EWR"; and by its metric, if the query has several
/// or there is nothing else. Printable.
std::string SeriesName(const reports::Query& query, const reports::ResultSeries& series);

/// Prints a table. Up to eight series stand side by side, unless they are compared.
void PrintTable(const reports::Query& query, const reports::QueryResult& result);
/// Prints a line of CSV for each value: metric, filter (if filters have names), segments, time, value, and
/// with a comparison its time and value. Numbers are exact.
void PrintCsv(const reports::Query& query, const reports::QueryResult& result);
/// Prints what an answer cost, by metric and salt.
void PrintCost(const reports::QueryResult& result);

}  // namespace kvstore::cli
