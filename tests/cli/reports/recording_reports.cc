#include "tests/cli/reports/recording_reports.h"

#include <fmt/format.h>

namespace kvstore::testing {
namespace {

std::string TextOf(const reports::Batch& batch, const reports::Batch::Point& point) {
  const reports::Batch::Series& series = batch.series()[point.series];
  const reports::Metric& metric = batch.info().metrics[series.metric];
  std::string text = fmt::format("{} {} ", metric.name, point.time);
  for (uint32_t key = 0; key < series.values.size(); ++key) {
    text += (key == 0 ? "" : ",") + batch.values(key)[series.values[key]];
  }
  if (metric.kind != reports::MetricKind::kValue) return text;
  return text + (point.number.is_integer() ? fmt::format("={}", point.number.integer())
                                           : fmt::format("={:.1f}", point.number.real()));
}

}  // namespace

std::vector<RecordingReports::Written> RecordingReports::written() const {
  const MutexLock lock(mutex_);
  return written_;
}

std::vector<std::string> RecordingReports::points() const {
  std::vector<std::string> all;
  for (const Written& batch : written()) all.insert(all.end(), batch.points.begin(), batch.points.end());
  return all;
}

std::vector<std::vector<std::string>> RecordingReports::asked() const {
  const MutexLock lock(mutex_);
  return asked_;
}

absl::StatusOr<reports::ReportInfo> RecordingReports::Info(std::string_view report,
                                                           const std::vector<std::string>& metrics) {
  if (report != info_.name) return absl::NotFoundError(fmt::format("there is no report '{}'", report));
  const MutexLock lock(mutex_);
  asked_.push_back(metrics);
  reports::ReportInfo info = info_;
  info.metrics.clear();
  for (const std::string& name : metrics) {
    if (const reports::Metric* metric = info_.FindMetric(name)) info.metrics.push_back(*metric);
  }
  return info;
}

absl::StatusOr<uint64_t> RecordingReports::Write(const reports::Batch& batch,
                                                 const reports::WriteBatchOptions& options) {
  if (before_write) {
    if (absl::Status status = before_write(batch); !status.ok()) return status;
  }
  Written one{.batch = options.batch, .add = options.add, .points = {}};
  for (const reports::Batch::Point& point : batch.points()) one.points.push_back(TextOf(batch, point));
  const MutexLock lock(mutex_);
  written_.push_back(std::move(one));
  return batch.size();
}

reports::ReportInfo SiteReport() {
  using reports::MetricKind;
  return {.name = "site",
          .settings = {.id = 1},
          .keys = {{"country", std::nullopt}, {"app", "none"}},
          .metrics = {{1, "clicks", MetricKind::kValue},
                      {2, "cost", MetricKind::kValue},
                      {3, "users", MetricKind::kDistinct},
                      {4, "delay", MetricKind::kDistribution}}};
}

}  // namespace kvstore::testing
