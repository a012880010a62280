#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "reports/aggregate.h"
#include "reports/steps.h"

namespace kvstore::reports {

/// A metric, or an expression over several (expression.h), that is asked for under one name.
struct QueryMetric {
  std::string name;
  std::string expression;  ///< Empty: the metric of that name.
};

/// Which series take part. A key that is not named is not looked at.
struct QueryFilter {
  std::string name;  ///< The name of the filter's series in the answer; may be empty.
  /// Segment key -> the values that match; nullopt: any.
  std::map<std::string, std::optional<std::vector<std::string>>> where;
};

enum class Fill : uint8_t {
  kNone,      ///< A step without points is left out.
  kZero,      ///< It is 0.
  kPrevious,  ///< It is what the step before was; left out before the first.
};

struct QueryTop {
  size_t n = 0;
  /// Ranks the series by their whole range; the greatest come first, those without a value are left out.
  Function by;
};

struct QueryLimits {
  size_t max_filters = 1'000;
  size_t max_steps = 100'000;
  size_t max_groups = 100'000;                  ///< Groups of each metric; a filter without group_by is one.
  size_t max_memory_bytes = size_t{512} << 20;  ///< The memory of aggregates, the answer, and rows in work.
  uint64_t max_bytes = uint64_t{64} << 30;      ///< The bytes that may be read.
  size_t threads = 2;                           ///< Salts that are read at once.
};

struct Query {
  std::string report;
  std::vector<QueryMetric> metrics;
  int64_t from = 0;          ///< ms, inclusive.
  int64_t to = 0;            ///< ms, exclusive.
  std::optional<Step> step;  ///< None: the whole range is one.
  absl::TimeZone zone = absl::UTCTimeZone();
  std::vector<QueryFilter> filters;   ///< None: one without a name that all series match.
  std::vector<std::string> group_by;  ///< A series for each combination of these keys' values; none: one.
  Function function;
  /// The limit to the greatest series, of each metric and filter; none: all are returned.
  std::optional<QueryTop> top;
  Fill fill = Fill::kNone;
  /// Each series is also asked for a stretch of time earlier (-1) or later (+1). Without `top` the answer has
  /// the series of both; with it, those that are the greatest in [from, to).
  std::optional<Step> compare_step;
  int compare_sign = -1;
  /// Data that cannot be reached is left out, and named, instead of failing the query.
  bool partial = false;
  bool explain = false;  ///< The answer says what each part of the scan cost (QueryResult::parts).
  /// Roll-ups may be used. The answer is the same, bit for bit; without them it is computed from points
  /// alone.
  bool use_rollups = true;
  QueryLimits limits;
};

using TimeValue = std::pair<int64_t, Number>;

struct ResultSeries {
  std::string metric;
  std::string filter;
  std::vector<std::pair<std::string, std::string>> segments;  ///< Those of group_by, in its order.
  std::vector<TimeValue> points;                              ///< By the start of their steps.
  std::optional<std::vector<TimeValue>> compared;  ///< With compare_step; by the starts of their own steps.
};

struct QueryCost {
  uint64_t rows = 0;
  uint64_t chunks = 0;          ///< Chunks whose points were read.
  uint64_t chunks_skipped = 0;  ///< Chunks whose directory was enough.
  /// The bytes of all chunks of the rows whose points were needed, and of what was read of roll-ups and of
  /// rows' versions.
  uint64_t bytes = 0;
  uint64_t from_rollups = 0;  ///< Those among `rows` for which a roll-up was enough.
  double ms = 0;

  /// Adds what another part of the work cost.
  QueryCost& operator+=(const QueryCost& other) {
    rows += other.rows;
    chunks += other.chunks;
    chunks_skipped += other.chunks_skipped;
    bytes += other.bytes;
    from_rollups += other.from_rollups;
    ms += other.ms;
    return *this;
  }
};

/// The part of a query that reads one salt of one metric, for both stretches of time if two are compared.
struct PartCost {
  std::string metric;
  uint32_t salt = 0;
  QueryCost cost;  ///< Salts are read in parallel, so that their ms together may be more than the query's.
};

struct QueryResult {
  std::vector<ResultSeries> series;
  /// The parts that could not be read, each with the host as the store's message has it; empty: none.
  std::vector<std::string> missing;
  QueryCost cost;
  std::vector<PartCost> parts;  ///< With Query::explain, by metric, then salt.
};

}  // namespace kvstore::reports
