#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/histogram.h"
#include "bench/reports/duckdb.h"
#include "bench/reports/point_set.h"
#include "reports/reports.h"

namespace kvstore::bench {

/// A question about one metric of a set: sums of what matches, by some segment keys.
struct Question {
  uint32_t metric = 0;
  uint32_t first_day = 0;
  uint32_t end_day = 0;               ///< Exclusive.
  bool daily = false;                 ///< A sum for each day; else one for the whole range.
  uint32_t countries = UINT32_MAX;    ///< Only the first so many; UINT32_MAX: all, without a filter.
  std::vector<std::string> group_by;  ///< Some of country, app and gender, in this order.
};

/// How the question is put to a report.
reports::Query ToQuery(const PointSet& set, const Question& question, size_t threads);

/// Times of a question or of several, by turns.
struct Turns {
  Histogram ours;           ///< In ns.
  Histogram duckdb;         ///< Empty if there is no such peer.
  reports::QueryCost cost;  ///< The cost of our last answer.
};

/// Asks each question in each round, one side after the other, so that disturbances of the machine affect
/// both. Before the rounds, each is asked once without being timed, and both answers are compared with the
/// sums of the set's points.
///
/// duckdb  null: ours alone. Its table has the name of the set's report.
///
/// DATA_LOSS names the first sum in which an answer differs.
absl::StatusOr<Turns> AskByTurns(reports::Reports& reports, DuckDb* duckdb, const PointSet& set,
                                 std::span<const Question> questions, int rounds, size_t threads);

}  // namespace kvstore::bench
