#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore/v1/reports.pb.h"
#include "reports/reports.h"

/// The answers of a server to calls on reports, collected from the messages that they come in. A server is
/// not trusted: each collector checks what it takes, and how much.
///
/// Take returns RESOURCE_EXHAUSTED for too much, and any other error for an answer that does not fit the
/// request. Finish returns what was collected, or an error if something is missing. Externally synchronised.
namespace kvstore::client {

/// Counts the bytes of an answer.
class AnswerSize {
 public:
  explicit AnswerSize(size_t most) : most_(most) {}
  absl::Status Add(size_t bytes);

 private:
  const size_t most_;
  size_t bytes_ = 0;
};

/// The most bytes of a list of reports, or of a report's description.
inline constexpr size_t kMaxListBytes = size_t{512} << 20;

/// The names of reports, ascending; each message has some.
class NamesCollector {
 public:
  using Answer = std::vector<std::string>;
  absl::Status Take(v1::ListReportsResponse& message);
  absl::StatusOr<Answer> Finish() { return std::move(names_); }

 private:
  AnswerSize size_{kMaxListBytes};
  std::vector<std::string> names_;
};

/// One report with the metrics and values that were asked for.
class ReportCollector {
 public:
  using Answer = reports::ReportDescription;
  /// request  must outlive this.
  explicit ReportCollector(const v1::GetReportRequest& request)
      : request_(request), asked_(request.metrics().begin(), request.metrics().end()) {}
  absl::Status Take(v1::GetReportResponse& message);
  absl::StatusOr<Answer> Finish();

 private:
  absl::Status TakeReport(const v1::Report& message);
  absl::Status TakeValues(v1::GetReportResponse::SegmentValues& message);

  const v1::GetReportRequest& request_;
  const std::set<std::string_view> asked_;
  AnswerSize size_{kMaxListBytes};
  bool begun_ = false;
  reports::ReportDescription description_;
};

/// Returns the page of metrics that a server has answered; INTERNAL if it does not fit the request.
absl::StatusOr<reports::MetricPage> MetricsOf(const v1::ListMetricsRequest& request,
                                              const v1::ListMetricsResponse& response);

/// The answer to a query: series in the order of the query's metrics and filters, and then the end.
class AnswerCollector {
 public:
  using Answer = reports::QueryResult;
  /// query  must outlive this.
  explicit AnswerCollector(const reports::Query& query)
      : query_(query), size_(query.limits.max_memory_bytes) {}
  absl::Status Take(v1::QueryReportResponse& message);
  absl::StatusOr<Answer> Finish();

 private:
  /// Moves to the metric and the filter of the series that comes next. Returns false if the query has no such
  /// metric and filter after those of the series before it.
  bool MoveTo(const reports::ResultSeries& series);

  const reports::Query& query_;
  AnswerSize size_;
  size_t metric_ = 0;  // the place in the query of the last series
  size_t filter_ = 0;
  bool ended_ = false;
  reports::QueryResult result_;
};

/// INVALID_ARGUMENT with the limit unless a server takes a batch of this size.
absl::Status CheckSize(const v1::WritePointsRequest& request);

}  // namespace kvstore::client
