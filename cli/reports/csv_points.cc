#include "cli/reports/csv_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/nearest.h"
#include "cli/command.h"
#include "cli/reports/csv_reader.h"
#include "cli/reports/moments.h"
#include "cli/reports/point_value.h"

namespace kvstore::cli {
namespace {

constexpr std::string_view kTime = "time";
/// `progress` is called once in so many records.
constexpr uint64_t kRecordsOfProgress = 1024;

using Fields = std::span<const CsvReader::Field>;

/// The meaning of the columns of a file.
struct Columns {
  reports::ReportInfo info;
  size_t count = 0;
  size_t time = 0;
  std::vector<std::optional<size_t>> keys;  // for each segment key its column
  struct MetricColumn {
    size_t column = 0;
    size_t metric = 0;  // an index of info.metrics
  };
  std::vector<MetricColumn> metrics;

  /// Says in one line how records are read.
  std::string Layout(const absl::TimeZone& zone) const {
    std::string layout = fmt::format("csv zone={} time={}", zone.name(), time);
    for (size_t key = 0; key < keys.size(); ++key) {
      layout += fmt::format(" key {}={}", info.keys[key].name,
                            keys[key] ? fmt::format("{}", *keys[key]) : "default");
    }
    for (const MetricColumn& metric : metrics) {
      layout += fmt::format(" metric {}={}", info.metrics[metric.metric].name, metric.column);
    }
    return layout;
  }
};

absl::Status Heading(std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("heading: {}", problem));
}

absl::Status UnknownColumn(const reports::ReportInfo& info, const std::string& name) {
  std::vector<std::string> names = {std::string(kTime)};
  for (const reports::SegmentKey& key : info.keys) names.push_back(key.name);
  const std::vector<std::string> meant = Nearest(name, names);
  const std::string question =
      meant.empty() ? "" : fmt::format(" (did you mean {}?)", fmt::join(meant, ", or "));
  return Heading(fmt::format(
      "report '{}' has no segment key and no metric '{}'{}; add it with kv report alter, or leave the "
      "column out with --ignore",
      info.name, name, question));
}

/// The names in the heading; each may stand there once.
absl::StatusOr<std::vector<std::string>> NamesOf(Fields heading) {
  std::vector<std::string> names;
  for (const CsvReader::Field& field : heading) {
    if (field.text.empty()) return Heading(fmt::format("column {} has no name", names.size() + 1));
    if (std::find(names.begin(), names.end(), field.text) != names.end()) {
      return Heading(fmt::format("'{}' is named twice", field.text));
    }
    names.emplace_back(field.text);
  }
  return names;
}

/// Finds out what each column is.
absl::StatusOr<Columns> ReadHeading(reports::Reports& reports, const LoadOptions& options, Fields heading) {
  const auto names = NamesOf(heading);
  if (!names.ok()) return names.status();
  std::vector<std::string> asked;
  for (const std::string& name : *names) {
    if (name.size() <= reports::kMaxMetricNameBytes) asked.push_back(name);
  }
  auto info = reports.Info(options.report, asked);
  if (!info.ok()) return info.status();
  Columns columns{.info = *std::move(info), .count = names->size()};
  columns.keys.resize(columns.info.keys.size());
  bool has_time = false;
  for (size_t column = 0; column < names->size(); ++column) {
    const std::string& name = (*names)[column];
    const bool ignored =
        std::find(options.ignored.begin(), options.ignored.end(), name) != options.ignored.end();
    const auto key = columns.info.KeyNumber(name);
    const reports::Metric* metric = columns.info.FindMetric(name);
    if (ignored) continue;
    if (name == kTime) {
      has_time = true;
      columns.time = column;
    } else if (key && metric != nullptr) {
      return Heading(
          fmt::format("'{}' is a segment key and a metric; load this report from JSON lines", name));
    } else if (key) {
      columns.keys[*key] = column;
    } else if (metric != nullptr) {
      columns.metrics.push_back({column, static_cast<size_t>(metric - columns.info.metrics.data())});
    } else {
      return UnknownColumn(columns.info, name);
    }
  }
  if (!has_time) return Heading("has no column 'time'");
  if (columns.metrics.empty()) return Heading("names no metric");
  for (size_t key = 0; key < columns.keys.size(); ++key) {
    const reports::SegmentKey& known = columns.info.keys[key];
    if (columns.keys[key] || known.default_value) continue;
    return Heading(fmt::format("has no column for segment key '{}', which has no default", known.name));
  }
  return columns;
}

/// Turns records into points.
class RecordReader {
 public:
  RecordReader(Columns columns, const absl::TimeZone& zone)
      : columns_(std::move(columns)),
        times_(zone),
        segments_(columns_.keys.size()),
        values_(columns_.metrics.size()) {
    for (size_t i = 0; i < values_.size(); ++i) values_[i].metric = columns_.metrics[i].metric;
  }

  const Columns& columns() const { return columns_; }

  /// Adds all points of a record, or none and says why.
  absl::Status Read(Fields fields, LoadTarget& target) {
    if (fields.size() != columns_.count) {
      return absl::InvalidArgumentError(
          fmt::format("has {} fields, and the heading has {}", fields.size(), columns_.count));
    }
    const auto time = times_.Read(fields[columns_.time].text);
    if (!time.ok()) return absl::InvalidArgumentError(fmt::format("time: {}", Message(time.status())));
    for (size_t key = 0; key < segments_.size(); ++key) {
      segments_[key].reset();
      if (!columns_.keys[key]) continue;
      const CsvReader::Field& field = fields[*columns_.keys[key]];
      if (!field.text.empty() || field.quoted) segments_[key] = field.text;
    }
    size_t points = 0;
    for (size_t i = 0; i < values_.size(); ++i) {
      const std::string_view text = fields[columns_.metrics[i].column].text;
      if (text.empty()) continue;
      ++points;
      const reports::Metric& metric = columns_.info.metrics[values_[i].metric];
      const absl::Status status = ReadCell(text, metric.kind, values_[i]);
      if (!status.ok())
        return absl::InvalidArgumentError(fmt::format("{}: {}", metric.name, Message(status)));
    }
    reports::Batch& batch = target.BatchFor(points);
    for (size_t i = 0; i < values_.size(); ++i) {
      if (fields[columns_.metrics[i].column].text.empty()) continue;
      // A wrong time or segment is wrong for the first of the points, before one is added.
      if (auto status = AddPoint(batch, *time, segments_, values_[i]); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  static std::string Message(const absl::Status& status) { return std::string(status.message()); }

  const Columns columns_;
  PointTimes times_;
  std::vector<std::optional<std::string_view>> segments_;
  std::vector<PointValue> values_;
};

/// Reads the heading, after blank lines. Throws Failure.
RecordReader ReadFirst(reports::Reports& reports, const LoadOptions& options, CsvReader& reader) {
  while (true) {
    switch (OrFail(reader.Next())) {
      case CsvReader::Result::kBlank:
        continue;
      case CsvReader::Result::kBad:
        throw Failure{Heading(reader.problem())};
      case CsvReader::Result::kEnd:
        throw Failure{Heading("the file is empty")};
      case CsvReader::Result::kRecord:
        return {OrFail(ReadHeading(reports, options, reader.fields())), options.zone};
    }
  }
}

}  // namespace

void LoadCsv(reports::Reports& reports, const LoadOptions& options, int file, LoadTarget& target,
             const std::function<void(uint64_t)>& progress) {
  CsvReader reader(file);
  RecordReader records = ReadFirst(reports, options, reader);
  target.Use(records.columns().info, records.columns().Layout(options.zone));
  for (uint64_t count = 1;; ++count) {
    if (count % kRecordsOfProgress == 0) progress(reader.consumed());
    switch (OrFail(reader.Next())) {
      case CsvReader::Result::kEnd:
        progress(reader.consumed());
        return target.Finish();
      case CsvReader::Result::kBlank:
        target.Blank(1);
        break;
      case CsvReader::Result::kBad:
        target.Reject(reader.line(), reader.offset(), reader.text(), reader.problem());
        break;
      case CsvReader::Result::kRecord:
        if (const absl::Status status = records.Read(reader.fields(), target); status.ok()) {
          target.Done(reader.line(), reader.offset(), reader.text());
        } else {
          target.Reject(reader.line(), reader.offset(), reader.text(), std::string(status.message()));
        }
        break;
    }
  }
}

}  // namespace kvstore::cli
