#include "reports/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "json/bytes_json.h"
#include "reports/metadata_columns.h"
#include "reports/metadata_rollups.h"
#include "reports/row_key.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

/// Columns that one read names.
constexpr size_t kColumnsOfRead = 1'000;

absl::Status NoReport(std::string_view report) {
  return absl::NotFoundError(fmt::format("there is no report '{}'", report));
}

/// The limits are those within which stored settings decode.
absl::Status CheckSettings(const ReportSettings& settings) {
  if (settings.salts < 1 || settings.salts > kMaxSalts) {
    return absl::InvalidArgumentError(
        fmt::format("salts: must be 1 to {}, not {}", kMaxSalts, settings.salts));
  }
  constexpr auto kMaxLengthMs = static_cast<uint64_t>(kMaxTimeMs);
  if (settings.resolution_ms < 1 || settings.resolution_ms > kMaxLengthMs) {
    return absl::InvalidArgumentError(
        fmt::format("resolution: must be 1 to {} ms, not {}", kMaxLengthMs, settings.resolution_ms));
  }
  if (settings.period_s < 1 || settings.period_s > kMaxLengthMs / 1000 ||
      settings.period_s * 1000 % settings.resolution_ms != 0) {
    return absl::InvalidArgumentError(fmt::format(
        "period: must be a whole number of seconds from 1 to {}, and a multiple of the resolution",
        kMaxLengthMs / 1000));
  }
  return CheckRetention(settings.retention_ms);
}

/// Each name once, or with the same kind again: AddMetrics would refuse others, after the report was made.
absl::Status CheckMetrics(std::span<const Metric> metrics) {
  std::map<std::string_view, MetricKind> kinds;
  for (const Metric& metric : metrics) {
    KV_RETURN_IF_ERROR(CheckName("metrics", metric.name, kMaxMetricNameBytes));
    const auto [at, is_new] = kinds.emplace(metric.name, metric.kind);
    if (!is_new && at->second != metric.kind) {
      return absl::InvalidArgumentError(fmt::format("metrics: '{}' is named with two kinds, {} and {}",
                                                    metric.name, Name(at->second), Name(metric.kind)));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckInfo(const ReportInfo& info) {
  KV_RETURN_IF_ERROR(CheckName("report", info.name, kMaxReportNameBytes));
  if (info.keys.size() > kMaxSegmentKeys) {
    return absl::InvalidArgumentError(
        fmt::format("segment_keys: {} keys, the limit is {}", info.keys.size(), kMaxSegmentKeys));
  }
  for (size_t i = 0; i < info.keys.size(); ++i) {
    KV_RETURN_IF_ERROR(CheckName("segment_keys", info.keys[i].name, kMaxSegmentKeyBytes));
    if (info.KeyNumber(info.keys[i].name) != i) {
      return absl::InvalidArgumentError(fmt::format("segment_keys: '{}' is named twice", info.keys[i].name));
    }
  }
  KV_RETURN_IF_ERROR(CheckMetrics(info.metrics));
  return CheckSettings(info.settings);
}

absl::Status CheckDefault(const SegmentKey& key) {
  if (key.default_value &&
      (key.default_value->size() > kMaxSegmentValueBytes || !IsUtf8(*key.default_value))) {
    return absl::InvalidArgumentError(fmt::format(
        "default: the value of key '{}' must be UTF-8 of at most {} bytes", key.name, kMaxSegmentValueBytes));
  }
  return absl::OkStatus();
}

/// Adds the cells that are stored for a new segment key.
void AddKeyCells(std::map<std::string, std::string>& cells, uint32_t number, const SegmentKey& key) {
  cells[KeyColumn(number)] = KeyToText(key);
  cells[NextValueColumn(number)] = "1";
  if (key.default_value) {
    cells[ValueColumn(number, 0)] = *key.default_value;
    cells[IdColumn(number, *key.default_value)] = "0";
  }
}

std::vector<CellWrite> ToWrites(const std::map<std::string, std::string>& cells) {
  std::vector<CellWrite> writes;
  for (const auto& [column, value] : cells) writes.push_back({column, value, std::nullopt});
  return writes;
}

}  // namespace

absl::Status CheckName(std::string_view field, std::string_view name, size_t max) {
  const bool control = std::any_of(name.begin(), name.end(),
                                   [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
  if (name.empty() || name.size() > max || control || !IsUtf8(name)) {
    return absl::InvalidArgumentError(
        fmt::format("{}: a name has 1 to {} bytes of UTF-8 without control characters", field, max));
  }
  return absl::OkStatus();
}

absl::Status CheckRetention(uint64_t retention_ms) {
  if (retention_ms <= static_cast<uint64_t>(kMaxTimeMs)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("retention: must be 0 to {} ms, not {}", kMaxTimeMs, retention_ms));
}

absl::StatusOr<Metadata::Columns> Metadata::Read(const std::string& row,
                                                 std::vector<std::string> columns) const {
  Columns found;
  for (size_t begin = 0; begin < columns.size(); begin += kColumnsOfRead) {
    const size_t end = std::min(columns.size(), begin + kColumnsOfRead);
    ReadOptions options{.columns = std::vector<std::string>(columns.begin() + static_cast<ptrdiff_t>(begin),
                                                            columns.begin() + static_cast<ptrdiff_t>(end)),
                        .limit = kColumnsOfRead};
    do {
      KV_ASSIGN_OR_RETURN(Row page, store_.GetRow(dataset_, row, options));
      for (Item& item : page.items) found[item.column] = std::move(item.cells.front().value);
      options.marker = std::move(page.marker);
    } while (!options.marker.empty());
  }
  return found;
}

absl::StatusOr<Metadata::Columns> Metadata::ReadAll(const std::string& row) const {
  Columns found;
  ReadOptions options{.limit = 10'000};
  do {
    KV_ASSIGN_OR_RETURN(Row page, store_.GetRow(dataset_, row, options));
    for (Item& item : page.items) found[item.column] = std::move(item.cells.front().value);
    options.marker = std::move(page.marker);
  } while (!options.marker.empty());
  return found;
}

absl::StatusOr<bool> Metadata::PutIfCounter(const std::string& row, const std::string& counter,
                                            const std::optional<std::string>& before, uint64_t after,
                                            const Columns& cells) const {
  Columns all = cells;
  all[counter] = fmt::format("{}", after);
  WriteOptions options{.condition = Condition{.column = counter}};
  if (before) options.condition->equals = *before;
  const auto put = store_.PutRow(dataset_, row, ToWrites(all), options);
  if (put.ok()) return true;
  if (absl::IsAlreadyExists(put.status()) || absl::IsFailedPrecondition(put.status())) return false;
  return put.status();
}

absl::StatusOr<uint32_t> Metadata::NewReportId() const {
  const std::string row = CounterRow();
  for (int attempt = 0; attempt < kMaxPutAttempts; ++attempt) {
    KV_ASSIGN_OR_RETURN(const Columns columns, Read(row, {"next"}));
    std::optional<std::string> before;
    uint32_t id = 1;
    if (const auto found = columns.find("next"); found != columns.end()) {
      before = found->second;
      KV_ASSIGN_OR_RETURN(id, NumberFromText(found->second));
    }
    if (id == UINT32_MAX) {
      return absl::ResourceExhaustedError(
          "the dataset has given all IDs of reports, which are never used again");
    }
    KV_ASSIGN_OR_RETURN(const bool done, PutIfCounter(row, "next", before, uint64_t{id} + 1, {}));
    if (done) return id;
  }
  return TooBusy("(new)");
}

absl::StatusOr<ReportInfo> Metadata::Create(const ReportInfo& info) const {
  KV_RETURN_IF_ERROR(CheckInfo(info));
  for (const SegmentKey& key : info.keys) KV_RETURN_IF_ERROR(CheckDefault(key));
  KV_ASSIGN_OR_RETURN(const StoredRollups rollups, ChooseRollups(info, {}, info.rollups));
  if (absl::Status made = store_.CreateDataset({.name = dataset_});
      !made.ok() && !absl::IsAlreadyExists(made)) {
    return made;
  }
  const auto existing = Get(info.name, {});
  if (existing.ok())
    return absl::AlreadyExistsError(fmt::format("there is a report '{}' already", info.name));
  if (!absl::IsNotFound(existing.status())) return existing.status();
  ReportInfo created = info;
  KV_ASSIGN_OR_RETURN(created.settings.id, NewReportId());
  Columns cells;
  cells[kInfoColumn] = SettingsToText(created.settings);
  cells[kNextKey] = fmt::format("{}", info.keys.size());
  // Also where there are none, so that a report never has those of an earlier one that was dropped while
  // somebody declared them.
  cells[kRollupsColumn] = RollupsToText(rollups);
  cells[kNextMetric] = "0";
  for (uint32_t i = 0; i < info.keys.size(); ++i) AddKeyCells(cells, i, info.keys[i]);
  const WriteOptions absent{.condition = Condition{.column = kInfoColumn}};
  const auto put = store_.PutRow(dataset_, MetadataRow(info.name), ToWrites(cells), absent);
  if (absl::IsAlreadyExists(put.status())) {
    return absl::AlreadyExistsError(fmt::format("there is a report '{}' already", info.name));
  }
  if (!put.ok()) return put.status();
  KV_RETURN_IF_ERROR(AddMetrics(info.name, info.metrics));
  std::vector<std::string> names;
  for (const Metric& metric : info.metrics) names.push_back(metric.name);
  return Get(info.name, names);
}

absl::StatusOr<ReportInfo> Metadata::Get(std::string_view report,
                                         std::span<const std::string> metrics) const {
  std::vector<std::string> columns = {kInfoColumn, kRollupsColumn};
  for (uint32_t i = 0; i < kMaxSegmentKeys; ++i) columns.push_back(KeyColumn(i));
  for (const std::string& metric : metrics) {
    KV_RETURN_IF_ERROR(CheckName("metrics", metric, kMaxMetricNameBytes));
    columns.push_back(MetricColumn(metric));
  }
  KV_RETURN_IF_ERROR(CheckName("report", report, kMaxReportNameBytes));
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  auto read = Read(MetadataRow(report), columns);
  // Before the first report was created there is no dataset either.
  if (absl::IsNotFound(read.status())) return NoReport(report);
  if (!read.ok()) return read.status();
  const Columns& found = *read;
  const auto settings = found.find(kInfoColumn);
  if (settings == found.end()) return NoReport(report);
  ReportInfo info{.name = std::string(report)};
  KV_ASSIGN_OR_RETURN(info.settings, SettingsFromText(settings->second));
  for (uint32_t i = 0; i < kMaxSegmentKeys; ++i) {
    const auto key = found.find(KeyColumn(i));
    if (key == found.end()) break;
    KV_ASSIGN_OR_RETURN(SegmentKey decoded, KeyFromText(key->second));
    info.keys.push_back(std::move(decoded));
  }
  if (const auto rollups = found.find(kRollupsColumn); rollups != found.end()) {
    KV_ASSIGN_OR_RETURN(const StoredRollups stored, RollupsFromText(rollups->second));
    info.rollups = NamedRollups(info, stored);
  }
  std::set<std::string_view> taken;
  for (const std::string& name : metrics) {
    const auto metric = found.find(MetricColumn(name));
    if (metric == found.end() || !taken.insert(name).second) continue;
    KV_ASSIGN_OR_RETURN(Metric decoded, MetricFromText(name, metric->second));
    info.metrics.push_back(std::move(decoded));
  }
  return info;
}

absl::Status Metadata::CheckCurrent(const ReportInfo& info) const {
  KV_ASSIGN_OR_RETURN(const Columns columns, Read(MetadataRow(info.name), {kInfoColumn}));
  const auto found = columns.find(kInfoColumn);
  if (found == columns.end()) return NoReport(info.name);
  KV_ASSIGN_OR_RETURN(const ReportSettings settings, SettingsFromText(found->second));
  if (settings.id == info.settings.id) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "report '{}' was dropped and created again since its description was read; read it again", info.name));
}

absl::StatusOr<ReportInfo> Metadata::GetAll(std::string_view report) const {
  KV_ASSIGN_OR_RETURN(ReportInfo info, Get(report, {}));
  KV_ASSIGN_OR_RETURN(const Columns columns, ReadAll(MetadataRow(report)));
  for (auto at = columns.lower_bound(std::string(kMetricPrefix));
       at != columns.end() && at->first.starts_with(kMetricPrefix); ++at) {
    KV_ASSIGN_OR_RETURN(Metric metric, MetricFromText(at->first.substr(kMetricPrefix.size()), at->second));
    info.metrics.push_back(std::move(metric));
  }
  return info;
}

absl::StatusOr<MetricPage> Metadata::ListMetrics(std::string_view report,
                                                 const MetricListing& listing) const {
  if (listing.limit < 1 || listing.limit > kMaxListedMetrics) {
    return absl::InvalidArgumentError(
        fmt::format("limit: must be 1 to {}, not {}", kMaxListedMetrics, listing.limit));
  }
  for (const auto& [field, text] :
       {std::pair{"prefix", &listing.prefix}, std::pair{"after", &listing.after}}) {
    if (text->size() <= kMaxMetricNameBytes) continue;
    return absl::InvalidArgumentError(
        fmt::format("{}: has {} bytes, the limit is {}", field, text->size(), kMaxMetricNameBytes));
  }
  KV_RETURN_IF_ERROR(Get(report, {}).status());
  const std::string first = MetricColumn(listing.prefix);
  MetricPage page;
  // A page begins after a given column, so a metric whose name is the prefix itself is read apart.
  if (listing.after < listing.prefix) {
    KV_ASSIGN_OR_RETURN(const Columns whole, Read(MetadataRow(report), {first}));
    for (const auto& [column, text] : whole) {
      KV_ASSIGN_OR_RETURN(Metric metric, MetricFromText(listing.prefix, text));
      page.metrics.push_back(std::move(metric));
    }
  }
  // One more than are returned, which says whether others follow.
  ReadOptions options{.limit = static_cast<uint32_t>(listing.limit + 1),
                      .after_column = std::max(first, MetricColumn(listing.after))};
  do {
    KV_ASSIGN_OR_RETURN(Row columns, store_.GetRow(dataset_, MetadataRow(report), options));
    for (const Item& item : columns.items) {
      if (!item.column.starts_with(first)) return page;
      if (page.metrics.size() == listing.limit) {
        page.more = true;
        return page;
      }
      KV_ASSIGN_OR_RETURN(Metric metric,
                          MetricFromText(item.column.substr(kMetricPrefix.size()), item.cells.front().value));
      page.metrics.push_back(std::move(metric));
    }
    options.marker = std::move(columns.marker);
  } while (!options.marker.empty());
  return page;
}

absl::StatusOr<std::vector<std::string>> Metadata::List() const {
  std::vector<std::string> names;
  const KeyRange range = MetadataRange();
  auto cursor = store_.ScanRows(dataset_, {.start = range.start, .end = range.end},
                                {.columns = std::vector<std::string>{kInfoColumn}});
  if (absl::IsNotFound(cursor.status())) return names;
  if (!cursor.ok()) return cursor.status();
  ScannedRow row;
  while (true) {
    KV_ASSIGN_OR_RETURN(const bool more, (*cursor)->Next(row));
    if (!more) break;
    KV_ASSIGN_OR_RETURN(std::string name, ReportOfMetadataRow(row.key));
    names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status Metadata::Remove(const ReportInfo& info) const {
  KV_RETURN_IF_ERROR(store_.DeleteRow(dataset_, BatchesRow(info.settings.id), {}));
  return store_.DeleteRow(dataset_, MetadataRow(info.name), {});
}

}  // namespace kvstore::reports
