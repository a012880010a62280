#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/expression.h"
#include "reports/filter_set.h"
#include "reports/group_table.h"
#include "reports/query.h"

namespace kvstore::reports {

/// The groups of metrics, by name.
using MetricTables = std::map<std::string, GroupTable>;

/// Makes the series of an answer out of aggregates: functions, expressions, fill, names, order and top.
/// Externally synchronised; what it is made with must outlive it.
class Answer {
 public:
  /// use  Counts the memory of the answer.
  Answer(const Metadata& metadata, const ReportInfo& info, const Query& query, const FilterSet& filters,
         QueryUse& use)
      : metadata_(metadata), info_(info), query_(query), filters_(filters), use_(use) {}

  /// Appends the series of one metric or expression. RESOURCE_EXHAUSTED if all points take more memory than
  /// the query may use; looks at the caller's deadline between two series.
  ///
  /// compared  the tables that Compare will be given; null without a comparison. A series that only they have
  ///           is there too, without points, unless there is a `top`: that ranks what `tables` have.
  absl::Status Add(const std::string& name, const Expression& expression, const MetricTables& tables,
                   const StepGrid& grid, const MetricTables* compared);
  /// Gives each series that was added what the tables of another stretch of time say.
  absl::Status Compare(const std::vector<Expression>& expressions, const MetricTables& tables,
                       const StepGrid& grid);
  std::vector<ResultSeries> Take() &&;

 private:
  using Key = GroupTable::Key;
  struct Made {
    size_t expression = 0;
    Key key;
    std::optional<Number> rank;  // with top
    ResultSeries series;
  };

  /// Which series the metrics of an expression have in these tables.
  static void AddKeys(const Expression& expression, const MetricTables& tables, std::set<Key>& keys);
  /// The points of one series. A step in which a metric has no points is filled before the expression is
  /// evaluated, and one in which the expression has no value once more.
  absl::StatusOr<std::vector<TimeValue>> Points(const Expression& expression, const MetricTables& tables,
                                                const StepGrid& grid, const Key& key) const;
  absl::Status NameSegments(std::vector<Made>& made) const;
  /// Leaves the first n of each filter.
  void KeepTop(std::vector<Made>& made) const;

  const Metadata& metadata_;
  const ReportInfo& info_;
  const Query& query_;
  const FilterSet& filters_;
  QueryUse& use_;
  size_t expressions_ = 0;  // that were added
  std::vector<Made> made_;
};

}  // namespace kvstore::reports
