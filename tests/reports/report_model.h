#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reports/batch.h"
#include "reports/query.h"
#include "reports/report_types.h"
#include "tests/support/random.h"

namespace kvstore::testing {

/// A report as a plain map of points, which answers queries by looking at all of them.
class ReportModel {
 public:
  explicit ReportModel(reports::ReportInfo info) : info_(std::move(info)) {}

  using Segments = std::vector<std::string>;
  struct Point {
    size_t metric = 0;
    Segments segments;
    int64_t time = 0;
    reports::Number number;
    std::vector<std::string> members;  // of kind distinct
    std::vector<double> values;        // of kind distribution
  };

  const reports::ReportInfo& info() const { return info_; }
  void Write(const std::vector<Point>& points, bool add);
  void Delete(const std::set<size_t>& metrics, int64_t from, int64_t to);
  void AddKey(const reports::SegmentKey& key);
  /// Points before this time are seen no more, whenever they are written. It never goes back.
  void Expire(int64_t before);
  size_t size() const { return points_.size(); }

  /// The series that a query of one metric, without expression, is to give, with those of the time that it
  /// compares with.
  std::vector<reports::ResultSeries> Answer(const reports::Query& query) const;

 private:
  struct Name {
    size_t metric;
    Segments segments;
    int64_t time;
    friend auto operator<=>(const Name&, const Name&) = default;
  };
  using Groups = std::map<Segments, std::vector<Point>>;
  /// The points in [from, to) that a query's filter matches, by the values of group_by.
  Groups GroupsOf(const reports::Query& query, const reports::QueryFilter& filter, int64_t from,
                  int64_t to) const;
  std::vector<reports::TimeValue> Points(const reports::Query& query, const std::vector<Point>& points,
                                         int64_t from, int64_t to) const;

  reports::ReportInfo info_;
  std::map<Name, Point> points_;
  int64_t expired_before_ = 0;
};

}  // namespace kvstore::testing
