#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "json/bytes_json.h"
#include "reports/metadata.h"
#include "reports/metadata_columns.h"
#include "reports/metadata_rollups.h"
#include "reports/row_key.h"
#include "reports/status_macros.h"

/// The part of Metadata that gives numbers.
namespace kvstore::reports {
namespace {

/// Values or metrics that one put gives IDs to, so that it stays far below the limit of a put.
constexpr size_t kValuesOfPut = 1'000;

/// The next number to give, and how it is stored.
struct Counter {
  std::string text;
  uint32_t next = 0;
};

/// NOT_FOUND without it: somebody has dropped the report meanwhile. If the counter were made anew, the next
/// report of that name would give its numbers twice.
absl::StatusOr<Counter> CounterOf(const std::map<std::string, std::string>& columns, const std::string& name,
                                  std::string_view report) {
  const auto found = columns.find(name);
  if (found == columns.end()) return absl::NotFoundError(fmt::format("there is no report '{}'", report));
  KV_ASSIGN_OR_RETURN(const uint32_t next, NumberFromText(found->second));
  return Counter{found->second, next};
}

/// Returns the next number, and counts on.
absl::StatusOr<uint32_t> Take(uint32_t& next, std::string_view report, std::string_view what) {
  if (next == UINT32_MAX) {
    return absl::ResourceExhaustedError(
        fmt::format("report '{}' has given all {} IDs of its {}", report, UINT32_MAX, what));
  }
  return next++;
}

}  // namespace

absl::Status Metadata::AddMetrics(std::string_view report, std::span<const Metric> metrics) const {
  const std::string row = MetadataRow(report);
  for (size_t begin = 0; begin < metrics.size(); begin += kValuesOfPut) {
    const auto part = metrics.subspan(begin, std::min(kValuesOfPut, metrics.size() - begin));
    std::vector<std::string> names = {kNextMetric};
    for (const Metric& metric : part) {
      KV_RETURN_IF_ERROR(CheckName("metrics", metric.name, kMaxMetricNameBytes));
      names.push_back(MetricColumn(metric.name));
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    bool done = false;
    for (int attempt = 0; attempt < kMaxPutAttempts && !done; ++attempt) {
      KV_ASSIGN_OR_RETURN(const Columns found, Read(row, names));
      KV_ASSIGN_OR_RETURN(const Counter counter, CounterOf(found, kNextMetric, report));
      uint32_t next = counter.next;
      Columns cells;
      for (const Metric& metric : part) {
        const std::string column = MetricColumn(metric.name);
        const auto stored = found.find(column);
        const auto same = cells.find(column);
        if (stored == found.end() && same == cells.end()) {
          KV_ASSIGN_OR_RETURN(const uint32_t id, Take(next, report, "metrics"));
          cells[column] = MetricToText({.id = id, .kind = metric.kind});
          continue;
        }
        KV_ASSIGN_OR_RETURN(const Metric known,
                            MetricFromText(metric.name, same == cells.end() ? stored->second : same->second));
        if (known.kind != metric.kind) {
          return absl::AlreadyExistsError(
              fmt::format("metric '{}' exists with the kind '{}'; it cannot become '{}'", metric.name,
                          Name(known.kind), Name(metric.kind)));
        }
      }
      if (cells.empty()) break;
      KV_ASSIGN_OR_RETURN(done, PutIfCounter(row, kNextMetric, counter.text, next, cells));
      if (!done && attempt + 1 == kMaxPutAttempts) return TooBusy(report);
    }
  }
  return absl::OkStatus();
}

absl::Status Metadata::AddKey(std::string_view report, const SegmentKey& key) const {
  KV_RETURN_IF_ERROR(CheckName("add_segment_key", key.name, kMaxSegmentKeyBytes));
  if (!key.default_value || key.default_value->size() > kMaxSegmentValueBytes ||
      !IsUtf8(*key.default_value)) {
    return absl::InvalidArgumentError(fmt::format(
        "add_segment_key: a key that is added needs a default of at most {} bytes of UTF-8, which "
        "the points have that are there already",
        kMaxSegmentValueBytes));
  }
  for (int attempt = 0; attempt < kMaxPutAttempts; ++attempt) {
    KV_ASSIGN_OR_RETURN(const ReportInfo info, Get(report, {}));
    if (info.KeyNumber(key.name)) {
      return absl::AlreadyExistsError(
          fmt::format("report '{}' has a segment key '{}' already", report, key.name));
    }
    const auto number = static_cast<uint32_t>(info.keys.size());
    if (number == kMaxSegmentKeys) {
      return absl::ResourceExhaustedError(
          fmt::format("report '{}' has {} segment keys, which is the limit", report, kMaxSegmentKeys));
    }
    const Columns cells = {{KeyColumn(number), KeyToText(key)},
                           {NextValueColumn(number), "1"},
                           {ValueColumn(number, 0), *key.default_value},
                           {IdColumn(number, *key.default_value), "0"}};
    KV_ASSIGN_OR_RETURN(
        const bool done,
        PutIfCounter(MetadataRow(report), kNextKey, fmt::format("{}", number), uint64_t{number} + 1, cells));
    if (done) return absl::OkStatus();
  }
  return TooBusy(report);
}

absl::Status Metadata::SetRetention(std::string_view report, uint64_t retention_ms) const {
  KV_RETURN_IF_ERROR(CheckRetention(retention_ms));
  for (int attempt = 0; attempt < kMaxPutAttempts; ++attempt) {
    KV_ASSIGN_OR_RETURN(const ReportInfo info, Get(report, {}));
    ReportSettings settings = info.settings;
    settings.retention_ms = retention_ms;
    const std::string before = SettingsToText(info.settings);
    const std::string after = SettingsToText(settings);
    const CellWrite cell{kInfoColumn, after, std::nullopt};
    const WriteOptions unchanged{.condition = Condition{.column = kInfoColumn, .equals = before}};
    const auto put = store_.PutRow(dataset_, MetadataRow(report), {&cell, 1}, unchanged);
    if (!absl::IsFailedPrecondition(put.status())) return put.status();
  }
  return TooBusy(report);
}

absl::Status Metadata::SetRollups(std::string_view report, const std::vector<Rollup>& rollups) const {
  const std::string row = MetadataRow(report);
  for (int attempt = 0; attempt < kMaxPutAttempts; ++attempt) {
    KV_ASSIGN_OR_RETURN(const ReportInfo info, Get(report, {}));
    KV_ASSIGN_OR_RETURN(const Columns found, Read(row, {kRollupsColumn}));
    const auto before = found.find(kRollupsColumn);
    StoredRollups known;
    WriteOptions unchanged{.condition = Condition{.column = kRollupsColumn}};
    if (before != found.end()) {
      KV_ASSIGN_OR_RETURN(known, RollupsFromText(before->second));
      unchanged.condition->equals = before->second;
    }
    KV_ASSIGN_OR_RETURN(const StoredRollups chosen, ChooseRollups(info, known, rollups));
    const std::string text = RollupsToText(chosen);
    const CellWrite cell{kRollupsColumn, text, std::nullopt};
    const auto put = store_.PutRow(dataset_, row, {&cell, 1}, unchanged);
    if (!absl::IsFailedPrecondition(put.status()) && !absl::IsAlreadyExists(put.status()))
      return put.status();
  }
  return TooBusy(report);
}

absl::StatusOr<std::vector<std::optional<uint32_t>>> Metadata::FindValues(
    std::string_view report, uint32_t key, std::span<const std::string> values) const {
  std::vector<std::string> columns;
  // Longer values than are allowed cannot have an ID, and would make names of columns that are too long.
  for (const std::string& value : values) {
    if (value.size() <= kMaxSegmentValueBytes) columns.push_back(IdColumn(key, value));
  }
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  KV_ASSIGN_OR_RETURN(const Columns found, Read(MetadataRow(report), columns));
  std::vector<std::optional<uint32_t>> ids(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const auto at = found.find(IdColumn(key, values[i]));
    if (at == found.end()) continue;
    KV_ASSIGN_OR_RETURN(ids[i], NumberFromText(at->second));
  }
  return ids;
}

absl::StatusOr<std::vector<uint32_t>> Metadata::GiveValues(std::string_view report, uint32_t key,
                                                           std::span<const std::string> values) const {
  std::vector<uint32_t> ids;
  for (size_t begin = 0; begin < values.size(); begin += kValuesOfPut) {
    const auto part = values.subspan(begin, std::min(kValuesOfPut, values.size() - begin));
    KV_ASSIGN_OR_RETURN(const std::vector<uint32_t> given, GiveFewValues(report, key, part));
    ids.insert(ids.end(), given.begin(), given.end());
  }
  return ids;
}

absl::StatusOr<std::vector<uint32_t>> Metadata::GiveFewValues(std::string_view report, uint32_t key,
                                                              std::span<const std::string> values) const {
  const std::string row = MetadataRow(report);
  const std::string counter_name = NextValueColumn(key);
  for (int attempt = 0; attempt < kMaxPutAttempts; ++attempt) {
    KV_ASSIGN_OR_RETURN(const Columns columns, Read(row, {counter_name}));
    KV_ASSIGN_OR_RETURN(const Counter counter, CounterOf(columns, counter_name, report));
    // Looked for after the counter was read, so that a value is new if the counter has not changed.
    KV_ASSIGN_OR_RETURN(const auto found, FindValues(report, key, values));
    Columns cells;
    uint32_t next = counter.next;
    for (size_t i = 0; i < values.size(); ++i) {
      if (found[i] || cells.contains(IdColumn(key, values[i]))) continue;
      if (values[i].size() > kMaxSegmentValueBytes || !IsUtf8(values[i])) {
        return absl::InvalidArgumentError(
            fmt::format("segments: a value has {} bytes; it must be UTF-8 of at most {}", values[i].size(),
                        kMaxSegmentValueBytes));
      }
      KV_ASSIGN_OR_RETURN(const uint32_t id, Take(next, report, "segment values"));
      cells[ValueColumn(key, id)] = values[i];
      cells[IdColumn(key, values[i])] = fmt::format("{}", id);
    }
    if (!cells.empty()) {
      KV_ASSIGN_OR_RETURN(const bool done, PutIfCounter(row, counter_name, counter.text, next, cells));
      if (!done) continue;
    }
    std::vector<uint32_t> ids;
    for (size_t i = 0; i < values.size(); ++i) {
      if (found[i]) {
        ids.push_back(*found[i]);
      } else {
        KV_ASSIGN_OR_RETURN(ids.emplace_back(), NumberFromText(cells.at(IdColumn(key, values[i]))));
      }
    }
    return ids;
  }
  return TooBusy(report);
}

absl::StatusOr<std::vector<std::string>> Metadata::ValuesOf(std::string_view report, uint32_t key,
                                                            std::span<const uint32_t> ids) const {
  std::vector<std::string> columns;
  for (const uint32_t id : ids) columns.push_back(ValueColumn(key, id));
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  KV_ASSIGN_OR_RETURN(const Columns found, Read(MetadataRow(report), columns));
  std::vector<std::string> values;
  for (const uint32_t id : ids) {
    const auto at = found.find(ValueColumn(key, id));
    if (at == found.end()) {
      return absl::DataLossError(fmt::format(
          "report '{}': a point has the value {} of segment key {}, which was never given", report, id, key));
    }
    values.push_back(at->second);
  }
  return values;
}

absl::StatusOr<std::vector<std::string>> Metadata::AllValues(std::string_view report, uint32_t key) const {
  KV_ASSIGN_OR_RETURN(const Columns columns,
                      Read(MetadataRow(report), {NextValueColumn(key), ValueColumn(key, 0)}));
  KV_ASSIGN_OR_RETURN(const Counter counter, CounterOf(columns, NextValueColumn(key), report));
  std::vector<std::string> values;
  if (const auto found = columns.find(ValueColumn(key, 0)); found != columns.end()) {
    values.push_back(found->second);
  }
  // Part by part, so that a counter that is damaged is found out by the first value that is not there.
  for (uint32_t id = 1; id < counter.next;) {
    std::vector<uint32_t> ids;
    while (id < counter.next && ids.size() < kValuesOfPut) ids.push_back(id++);
    KV_ASSIGN_OR_RETURN(std::vector<std::string> part, ValuesOf(report, key, ids));
    values.insert(values.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
  }
  return values;
}

}  // namespace kvstore::reports
