#pragma once

#include <string>

#include "reports/query.h"

/// Answers of queries as text. Text from a store is shown as cli/escape.h says; CSV is, too, where standard
/// output is a terminal.
namespace kvstore::cli {

/// Writes a number for people: real numbers with at most three digits after the point.
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
