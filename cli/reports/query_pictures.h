#pragma once

#include <cstddef>
#include <string>

#include "charts/line_chart.h"
#include "reports/query.h"

/// Answers of queries as pictures. Both want a query with steps.
namespace kvstore::cli {

/// The most lines that a picture has, the comparisons included.
inline constexpr size_t kMaxDrawnLines = 50;

/// Returns how many characters fit into a line of the terminal; if standard output is none, COLUMNS of the
/// environment, or 80.
size_t TerminalWidth();
/// Draws a line of block characters for each series, with its least and its greatest value, in lines of
/// `width` characters where the names leave room. There are no colours.
std::string BlockChart(const reports::Query& query, const reports::QueryResult& result, size_t width);

/// Returns a chart with a line for each series, and one for each that it is compared with. Throws Failure:
/// INVALID_ARGUMENT if there are more than kMaxDrawnLines.
charts::LineChart LinesOf(const reports::Query& query, const reports::QueryResult& result);

}  // namespace kvstore::cli
