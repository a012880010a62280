#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/batch.h"
#include "reports/metadata.h"
#include "reports/query.h"
#include "reports/report_types.h"
#include "tests/reports/report_model.h"
#include "tests/support/random.h"

namespace kvstore::testing {

/// Random choices of what is done to a report, and what is asked of it.
class ReportChoices {
 public:
  static constexpr int64_t kHour = 3'600'000;
  static constexpr int64_t kHours = 24 * 40;  ///< The stretch of time that points lie in.

  explicit ReportChoices(uint64_t seed) : random_(seed) {}
  Random& random() { return random_; }

  /// A report "flights" with two segment keys and a metric of each kind, the second one of values in eighths.
  reports::ReportInfo Report();
  /// Points that may be written: most are young, some of any age.
  std::vector<ReportModel::Point> Points(const reports::ReportInfo& info, uint64_t most);
  /// The same points for the store, some with their defaults left out.
  reports::Batch BatchOf(const reports::ReportInfo& info, const std::vector<ReportModel::Point>& points);
  /// Up to three roll-ups.
  std::vector<reports::Rollup> Rollups(const reports::ReportInfo& info);
  /// A query of one metric, without an expression: what the model answers.
  reports::Query PlainQuery(const reports::ReportInfo& info);
  /// A query with an expression, a comparison or several metrics.
  reports::Query WideQuery(const reports::ReportInfo& info);

 private:
  std::string Value(const reports::ReportInfo& info, size_t key);
  ReportModel::Point Point(const reports::ReportInfo& info);
  void ChooseTimes(const reports::ReportInfo& info, reports::Query& query);
  void ChooseComparison(reports::Query& query);

  Random random_;
};

/// Expects two answers to be the same, bit for bit.
void ExpectSameSeries(const std::vector<reports::ResultSeries>& got,
                      const std::vector<reports::ResultSeries>& expected, const std::string& what);
/// Asks with roll-ups and without, and expects the same answer, bit for bit, or the same error. Returns the
/// answer; its cost is that with roll-ups.
absl::StatusOr<reports::QueryResult> AskBothWays(const reports::Metadata& metadata, reports::Query query);
/// Asks both ways, and expects the model's answer. Returns how many rows a roll-up was enough for.
uint64_t ExpectModelsAnswer(const reports::Metadata& metadata, const ReportModel& model,
                            const reports::Query& query);

}  // namespace kvstore::testing
