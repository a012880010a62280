#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "wire/convert_reports.h"
#include "wire/number_columns.h"

/// Batches of points and their messages.
namespace kvstore::wire {
namespace {

using reports::Batch;
using reports::MetricKind;
using reports::ReportInfo;

/// Adds the series of a batch: their metrics, and for each segment key a column.
void SeriesToWire(const Batch& batch, v1::WritePointsRequest& message) {
  const ReportInfo& info = batch.info();
  // A batch may know many more metrics than it has points of, and the server looks up those of the message.
  constexpr uint32_t kNotYet = UINT32_MAX;
  std::vector<uint32_t> indexes(info.metrics.size(), kNotYet);
  const auto count = static_cast<int>(batch.series().size());
  message.mutable_series_metrics()->Reserve(count);
  for (const Batch::Series& series : batch.series()) {
    uint32_t& index = indexes[series.metric];
    if (index == kNotYet) {
      index = static_cast<uint32_t>(message.metrics_size());
      message.add_metrics(info.metrics[series.metric].name);
    }
    message.add_series_metrics(index);
  }
  for (uint32_t key = 0; key < info.keys.size(); ++key) {
    v1::SegmentColumn& column = *message.add_keys();
    column.set_key(info.keys[key].name);
    for (const std::string& value : batch.values(key)) column.add_values(value);
    column.mutable_series_values()->Reserve(count);
    for (const Batch::Series& series : batch.series()) column.add_series_values(series.values[key] + 1);
  }
}

/// Reads the points of one message, each into the batch.
class PointsReader {
 public:
  PointsReader(const v1::WritePointsRequest& message, const ReportInfo& info)
      : message_(message), info_(info), batch_(info) {}

  absl::StatusOr<Batch> Read() && {
    absl::Status status = ReadMetrics();
    if (status.ok()) status = ReadKeys();
    if (status.ok()) status = ReadValues();
    if (status.ok()) status = ReadDistincts();
    if (status.ok()) status = ReadDistributions();
    if (!status.ok()) return status;
    return std::move(batch_);
  }

 private:
  absl::Status ReadMetrics() {
    absl::flat_hash_map<std::string, size_t> indexes;
    for (size_t i = 0; i < info_.metrics.size(); ++i) indexes.emplace(info_.metrics[i].name, i);
    for (int i = 0; i < message_.metrics_size(); ++i) {
      const auto found = indexes.find(message_.metrics(i));
      if (found == indexes.end()) {
        return absl::NotFoundError(fmt::format("metrics[{}]: report '{}' has no metric '{}'; add it first", i,
                                               info_.name, message_.metrics(i)));
      }
      metrics_.push_back(found->second);
    }
    return CheckIndexes(message_.series_metrics(), metrics_.size(), "series_metrics");
  }

  absl::Status ReadKeys() {
    columns_.assign(info_.keys.size(), nullptr);
    for (int i = 0; i < message_.keys_size(); ++i) {
      const v1::SegmentColumn& column = message_.keys(i);
      const std::string field = fmt::format("keys[{}]", i);
      const auto key = info_.KeyNumber(column.key());
      if (!key) {
        return absl::InvalidArgumentError(
            fmt::format("{}: report '{}' has no segment key '{}'", field, info_.name, column.key()));
      }
      if (std::exchange(columns_[*key], &column) != nullptr)
        return absl::InvalidArgumentError(fmt::format("{}: '{}' is named twice", field, column.key()));
      if (column.series_values_size() != message_.series_metrics_size()) {
        return absl::InvalidArgumentError(fmt::format("{}.series_values: {} entries for {} series", field,
                                                      column.series_values_size(),
                                                      message_.series_metrics_size()));
      }
      // 0 stands for the default.
      const size_t count = static_cast<size_t>(column.values_size()) + 1;
      auto status = CheckIndexes(column.series_values(), count, field + ".series_values");
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status ReadValues() {
    const v1::ValuePoints& points = message_.values();
    const auto numbers =
        NumbersOf(points.values(), static_cast<size_t>(points.series_size()), "values.values");
    if (!numbers.ok()) return numbers.status();
    // Has the batch's number of each series of the message. A series without points gets none.
    constexpr uint32_t kNotYet = UINT32_MAX;
    std::vector<uint32_t> found(static_cast<size_t>(message_.series_metrics_size()), kNotYet);
    return EachPoint(points, "values", [&](int i, int series, int64_t time) -> absl::Status {
      uint32_t& of_batch = found[static_cast<size_t>(series)];
      if (of_batch == kNotYet) {
        FindSegments(series);
        const auto begun = batch_.FindSeries(MetricOf(series), segments_);
        if (!begun.ok()) return begun.status();
        of_batch = *begun;
      }
      return batch_.AddTo(of_batch, time, (*numbers)[static_cast<size_t>(i)]);
    });
  }

  absl::Status ReadDistincts() {
    const v1::DistinctPoints& points = message_.distincts();
    int next = 0;
    std::vector<std::string> members;
    return ReadMany(points, points.members_size(), "distincts", [&](int i, size_t metric, int64_t time) {
      const auto end = next + static_cast<int>(points.counts(i));
      members.assign(points.members().begin() + next, points.members().begin() + end);
      next = end;
      return batch_.AddDistinct(metric, time, segments_, members);
    });
  }

  absl::Status ReadDistributions() {
    const v1::DistributionPoints& points = message_.distributions();
    int next = 0;
    return ReadMany(points, points.values_size(), "distributions", [&](int i, size_t metric, int64_t time) {
      const std::span<const double> values(points.values().data() + next, points.counts(i));
      next += static_cast<int>(points.counts(i));
      return batch_.AddDistribution(metric, time, segments_, values);
    });
  }

  /// Reads points that are given by their sketches, or by as many entries of a list as `counts` says.
  ///
  /// add  Adds the i-th point by its entries.
  template <typename Points, typename Add>
  absl::Status ReadMany(const Points& points, int entries, std::string_view field, const Add& add) {
    const bool sketches = points.sketches_size() > 0;
    const int given = sketches ? points.sketches_size() : points.counts_size();
    if (given != points.series_size()) {
      return absl::InvalidArgumentError(fmt::format("{}.{}: {} entries for {} points", field,
                                                    sketches ? "sketches" : "counts", given,
                                                    points.series_size()));
    }
    uint64_t total = 0;
    for (const uint32_t count : points.counts()) total += count;
    if (total != static_cast<uint64_t>(entries) || (sketches && points.counts_size() > 0)) {
      return absl::InvalidArgumentError(
          fmt::format("{}.counts: the sum is {}, and there are {} entries{}", field, total, entries,
                      sketches ? "; leave them out where there are sketches" : ""));
    }
    if (!sketches) return ReadPoints(points, field, add);
    return ReadPoints(points, field, [&](int i, size_t metric, int64_t time) {
      return AddSketch(KindOf<Points>(), metric, time, points.sketches(i));
    });
  }

  template <typename Points>
  static constexpr MetricKind KindOf() {
    return std::is_same_v<Points, v1::DistinctPoints> ? MetricKind::kDistinct : MetricKind::kDistribution;
  }

  absl::Status AddSketch(MetricKind kind, size_t metric, int64_t time, const std::string& sketch) {
    if (info_.metrics[metric].kind != kind) {
      return absl::InvalidArgumentError(fmt::format("metric '{}' is of kind {}", info_.metrics[metric].name,
                                                    Name(info_.metrics[metric].kind)));
    }
    return batch_.AddSketch(metric, time, segments_, sketch);
  }

  /// Reads the series and the time of each point, and calls `add` with its index, metric and time; segments_
  /// has its segments then.
  template <typename Points, typename Add>
  absl::Status ReadPoints(const Points& points, std::string_view field, const Add& add) {
    return EachPoint(points, field, [&](int i, int series, int64_t time) {
      FindSegments(series);
      return add(i, MetricOf(series), time);
    });
  }

  /// Calls `add` with the index, the series of the message and the time of each point.
  template <typename Points, typename Add>
  absl::Status EachPoint(const Points& points, std::string_view field, const Add& add) {
    if (points.times_size() != points.series_size()) {
      return absl::InvalidArgumentError(fmt::format("{}.times: {} entries for {} points", field,
                                                    points.times_size(), points.series_size()));
    }
    const auto series_count = static_cast<size_t>(message_.series_metrics_size());
    auto status = CheckIndexes(points.series(), series_count, fmt::format("{}.series", field));
    if (!status.ok()) return status;
    for (int i = 0; i < points.series_size(); ++i) {
      status = add(i, static_cast<int>(points.series(i)), points.times(i));
      if (!status.ok()) {
        return absl::Status(status.code(), fmt::format("{}[{}].{}", field, i, std::string(status.message())));
      }
    }
    return absl::OkStatus();
  }

  size_t MetricOf(int series) const { return metrics_[message_.series_metrics(series)]; }

  void FindSegments(int series) {
    segments_.assign(columns_.size(), std::nullopt);
    for (size_t key = 0; key < columns_.size(); ++key) {
      const uint32_t value = columns_[key] == nullptr ? 0 : columns_[key]->series_values(series);
      if (value > 0) segments_[key] = columns_[key]->values(static_cast<int>(value - 1));
    }
  }

  template <typename Indexes>
  static absl::Status CheckIndexes(const Indexes& indexes, size_t count, std::string_view field) {
    for (int i = 0; i < indexes.size(); ++i) {
      if (indexes[i] >= count) {
        return absl::InvalidArgumentError(
            fmt::format("{}[{}]: {} is none of the {} that there are", field, i, indexes[i], count));
      }
    }
    return absl::OkStatus();
  }

  const v1::WritePointsRequest& message_;
  const ReportInfo& info_;
  Batch batch_;
  std::vector<size_t> metrics_;                    // for each of the message the index in the report
  std::vector<const v1::SegmentColumn*> columns_;  // for each key of the report; null: all have the default
  std::vector<std::optional<std::string_view>> segments_;  // of one point
};

}  // namespace

void ToWire(const Batch& batch, const reports::WriteBatchOptions& options, v1::WritePointsRequest& message) {
  message.set_report(batch.info().name);
  message.set_batch(options.batch);
  message.set_add(options.add);
  SeriesToWire(batch, message);
  const auto add = [](const Batch::Point& point, auto& points) {
    points.add_series(point.series);
    points.add_times(point.time);
  };
  for (const Batch::Point& point : batch.points()) {
    switch (batch.info().metrics[batch.series()[point.series].metric].kind) {
      case MetricKind::kValue:
        add(point, *message.mutable_values());
        AddNumber(point.number, *message.mutable_values()->mutable_values());
        break;
      case MetricKind::kDistinct:
        add(point, *message.mutable_distincts());
        message.mutable_distincts()->add_sketches(batch.sketches()[point.sketch]);
        break;
      case MetricKind::kDistribution:
        add(point, *message.mutable_distributions());
        message.mutable_distributions()->add_sketches(batch.sketches()[point.sketch]);
        break;
    }
  }
}

absl::StatusOr<Batch> FromWire(const v1::WritePointsRequest& message, const ReportInfo& info) {
  return PointsReader(message, info).Read();
}

}  // namespace kvstore::wire
