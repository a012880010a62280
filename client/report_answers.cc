#include "client/report_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kvstore_api/limits.h"
#include "wire/convert.h"
#include "wire/convert_reports.h"

namespace kvstore::client {
namespace {

absl::Status Invalid(std::string_view what) { return absl::InternalError(std::string(what)); }

}  // namespace

absl::Status AnswerSize::Add(size_t bytes) {
  if ((bytes_ += bytes) <= most_) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      fmt::format("the answer has more than {} bytes, which is the limit here", most_));
}

absl::Status NamesCollector::Take(v1::ListReportsResponse& message) {
  if (message.reports_size() == 0) return Invalid("answered a message without reports");
  if (auto status = size_.Add(message.ByteSizeLong()); !status.ok()) return status;
  for (std::string& name : *message.mutable_reports()) {
    if (!names_.empty() && names_.back() >= name) return Invalid("answered reports that are not in order");
    names_.push_back(std::move(name));
  }
  return absl::OkStatus();
}

// ---- a report ----

absl::Status ReportCollector::Take(v1::GetReportResponse& message) {
  if (auto status = size_.Add(message.ByteSizeLong()); !status.ok()) return status;
  if (begun_ && message.report().metrics_size() == 0 && message.segment_values_size() == 0)
    return Invalid("answered a message that brings nothing");
  if (auto status = TakeReport(message.report()); !status.ok()) return status;
  for (auto& values : *message.mutable_segment_values()) {
    if (auto status = TakeValues(values); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReportCollector::TakeReport(const v1::Report& message) {
  auto info = wire::FromWire(message);
  if (!info.ok()) return info.status();
  if (!request_.all_metrics()) {
    for (const reports::Metric& metric : info->metrics) {
      if (!asked_.contains(metric.name)) return Invalid("answered a metric that was not asked for");
    }
  }
  if (begun_) {
    auto& metrics = description_.info.metrics;
    metrics.insert(metrics.end(), std::make_move_iterator(info->metrics.begin()),
                   std::make_move_iterator(info->metrics.end()));
    return absl::OkStatus();
  }
  begun_ = true;
  // Points are checked against these before they are sent.
  const reports::ReportSettings& settings = info->settings;
  if (info->name != request_.report()) return Invalid("answered with another report");
  if (settings.resolution_ms == 0 || settings.period_s == 0 || info->keys.size() > reports::kMaxSegmentKeys)
    return Invalid("answered a report with impossible settings");
  description_.info = *std::move(info);
  if (!request_.segment_values()) return absl::OkStatus();
  for (const reports::SegmentKey& key : description_.info.keys) description_.segment_values[key.name];
  return absl::OkStatus();
}

absl::Status ReportCollector::TakeValues(v1::GetReportResponse::SegmentValues& message) {
  const auto found = description_.segment_values.find(message.key());
  if (found == description_.segment_values.end()) return Invalid("answered values that were not asked for");
  for (std::string& value : *message.mutable_values()) found->second.push_back(std::move(value));
  return absl::OkStatus();
}

absl::StatusOr<reports::ReportDescription> ReportCollector::Finish() {
  if (!begun_) return Invalid("answered without the report");
  return std::move(description_);
}

absl::StatusOr<reports::MetricPage> MetricsOf(const v1::ListMetricsRequest& request,
                                              const v1::ListMetricsResponse& response) {
  const auto size = static_cast<size_t>(response.metrics_size());
  // A page without an end would be asked for again and again.
  if (size > request.limit() || (response.more() && size == 0))
    return Invalid("answered another number of metrics than was asked for");
  reports::MetricPage page{.metrics = {}, .more = response.more()};
  page.metrics.reserve(size);
  std::string_view before = request.after();
  for (const v1::Metric& one : response.metrics()) {
    if (one.name() <= before || !one.name().starts_with(request.prefix()))
      return Invalid("answered metrics that were not asked for, or not in order");
    auto metric = wire::FromWire(one);
    if (!metric.ok()) return metric.status();
    page.metrics.push_back(*std::move(metric));
    before = one.name();
  }
  return page;
}

// ---- a query ----

bool AnswerCollector::MoveTo(const reports::ResultSeries& series) {
  const auto filter_name = [&](size_t filter) {
    return query_.filters.empty() ? std::string_view() : std::string_view(query_.filters[filter].name);
  };
  const size_t filters = std::max<size_t>(query_.filters.size(), 1);
  for (; metric_ < query_.metrics.size(); ++metric_, filter_ = 0) {
    if (query_.metrics[metric_].name != series.metric) continue;
    for (; filter_ < filters; ++filter_) {
      if (filter_name(filter_) == series.filter) return true;
    }
  }
  return false;
}

absl::Status AnswerCollector::Take(v1::QueryReportResponse& message) {
  if (ended_) return Invalid("answered something after the end of an answer");
  if (message.series_size() == 0 && !message.has_end()) return Invalid("answered a message without series");
  if (auto status = size_.Add(message.SpaceUsedLong()); !status.ok()) return status;
  for (auto& one : *message.mutable_series()) {
    auto series = wire::FromWire(one, query_);
    if (!series.ok()) return series.status();
    if (!MoveTo(*series)) return Invalid("answered series that were not asked for, or not in order");
    result_.series.push_back(*std::move(series));
  }
  if (!message.has_end()) return absl::OkStatus();
  ended_ = true;
  wire::FromWire(message.end(), result_);
  return absl::OkStatus();
}

absl::StatusOr<reports::QueryResult> AnswerCollector::Finish() {
  if (!ended_) return Invalid("ended the answer to a query before its cost");
  return std::move(result_);
}

// ---- batches ----

absl::Status CheckSize(const v1::WritePointsRequest& request) {
  const auto most = static_cast<int>(kMaxPageCells);
  for (const auto& [count, what] : {std::pair{request.series_metrics_size(), "series"},
                                    std::pair{request.values().times_size(), "points of kind value"},
                                    std::pair{request.distincts().times_size(), "points of kind distinct"},
                                    std::pair{request.distributions().times_size(), "distributions"}}) {
    if (count > most) {
      return absl::InvalidArgumentError(
          fmt::format("points: {} {} in one batch; a server takes {}", count, what, most));
    }
  }
  if (request.ByteSizeLong() <= static_cast<size_t>(wire::kMaxRequestBytes)) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("points: the batch has {} bytes; a server takes {}",
                                                request.ByteSizeLong(), wire::kMaxRequestBytes));
}

}  // namespace kvstore::client
