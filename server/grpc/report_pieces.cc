#include "server/grpc/report_pieces.h"

#include "wire/convert_reports.h"

namespace kvstore::server {
namespace {

/// The most bytes that an entry takes in a message beside its own.
constexpr size_t kEntryBytes = 16;

}  // namespace

bool NamePieces::Fill(v1::ListReportsResponse& message) {
  if (next_ == names_.size()) return false;
  for (size_t bytes = 0; next_ < names_.size() && bytes < kPieceBytes; ++next_) {
    bytes += names_[next_].size() + kEntryBytes;
    message.add_reports(names_[next_]);
  }
  return true;
}

size_t DescriptionPieces::memory() const {
  size_t bytes = sizeof(*this);
  for (const reports::Metric& metric : description_.info.metrics)
    bytes += sizeof(metric) + metric.name.size();
  for (const auto& [key, values] : description_.segment_values) {
    for (const std::string& value : values) bytes += sizeof(value) + value.size();
  }
  return bytes;
}

bool DescriptionPieces::Fill(v1::GetReportResponse& message) {
  const reports::ReportInfo& info = description_.info;
  const bool first = !begun_;
  if (first) wire::ToWireWithoutMetrics(info, *message.mutable_report());
  begun_ = true;
  size_t bytes = 0;
  for (; next_metric_ < info.metrics.size() && bytes < kPieceBytes; ++next_metric_) {
    bytes += info.metrics[next_metric_].name.size() + 2 * kEntryBytes;
    wire::ToWire(info.metrics[next_metric_], *message.mutable_report()->add_metrics());
  }
  // In the order of the keys' numbers.
  for (; next_key_ < info.keys.size() && bytes < kPieceBytes; ++next_key_, next_value_ = 0) {
    const std::string& key = info.keys[next_key_].name;
    const auto found = description_.segment_values.find(key);
    if (found == description_.segment_values.end() || found->second.empty()) continue;
    auto& values = *message.add_segment_values();
    values.set_key(key);
    for (; next_value_ < found->second.size() && bytes < kPieceBytes; ++next_value_) {
      bytes += found->second[next_value_].size() + kEntryBytes;
      values.add_values(found->second[next_value_]);
    }
    if (next_value_ < found->second.size()) break;
  }
  return first || bytes > 0;
}

size_t ResultPieces::memory() const {
  size_t bytes = sizeof(*this) + result_.parts.size() * sizeof(reports::PartCost);
  for (const reports::ResultSeries& series : result_.series) {
    bytes += sizeof(series) + series.points.size() * sizeof(reports::TimeValue);
    if (series.compared) bytes += series.compared->size() * sizeof(reports::TimeValue);
    for (const auto& [key, value] : series.segments) bytes += sizeof(key) + sizeof(value) + value.size();
  }
  return bytes;
}

bool ResultPieces::Fill(v1::QueryReportResponse& message) {
  if (ended_) return false;
  for (size_t bytes = 0; next_ < result_.series.size() && bytes < kPieceBytes; ++next_) {
    auto& series = *message.add_series();
    wire::ToWire(result_.series[next_], series);
    bytes += series.ByteSizeLong();
    result_.series[next_] = {};
  }
  ended_ = next_ == result_.series.size();
  if (ended_) wire::ToWire(result_, *message.mutable_end());
  return true;
}

}  // namespace kvstore::server
