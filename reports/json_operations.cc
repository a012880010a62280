#include "reports/json_operations.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "json/bytes_json.h"
#include "reports/json_points.h"
#include "reports/json_query.h"
#include "reports/json_times.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

std::string ReadDataset(JsonFields& fields) {
  return fields.OptionalString("dataset").value_or(kDefaultDataset);
}

/// A name alone, or {"name", "default"}.
SegmentKey ReadKey(JsonFields& fields, const Json& json, const std::string& path) {
  if (json.is_string()) return {.name = json.get<std::string>()};
  JsonFields inner(json, fields.Path(path + "."));
  SegmentKey key{.name = inner.String("name"), .default_value = inner.OptionalString("default")};
  fields.Fail(inner.Finish());
  return key;
}

/// A list of names, or of {"name", "kind"}; none if the field is not there.
std::vector<Metric> ReadMetrics(JsonFields& fields, std::string_view name) {
  std::vector<Metric> metrics;
  if (fields.Find(name) == nullptr) return metrics;
  const auto& list = fields.Array(name);
  for (size_t i = 0; i < list.size(); ++i) {
    Metric& metric = metrics.emplace_back();
    if (list[i].is_string()) {
      metric.name = list[i].get<std::string>();
      continue;
    }
    JsonFields inner(list[i], fields.Path(fmt::format("{}[{}].", name, i)));
    metric.name = inner.String("name");
    const std::string kind = inner.OptionalString("kind").value_or("value");
    if (const auto known = ParseMetricKind(kind)) {
      metric.kind = *known;
    } else {
      inner.Fail("kind", "must be value, distinct or distribution");
    }
    fields.Fail(inner.Finish());
  }
  return metrics;
}

Json MetricsToJson(const std::vector<Metric>& metrics) {
  Json list = Json::array();
  for (const Metric& metric : metrics)
    list.push_back({{"name", metric.name}, {"kind", std::string(Name(metric.kind))}});
  return list;
}

/// A list of {"keys", "step"}; nullopt if the field is not there.
std::optional<std::vector<Rollup>> ReadRollups(JsonFields& fields, std::string_view name) {
  if (fields.Find(name) == nullptr) return std::nullopt;
  std::vector<Rollup> rollups;
  const auto& list = fields.Array(name);
  for (size_t i = 0; i < list.size(); ++i) {
    JsonFields inner(list[i], fields.Path(fmt::format("{}[{}].", name, i)));
    Rollup& rollup = rollups.emplace_back();
    rollup.keys = inner.OptionalBytesList("keys").value_or(std::vector<std::string>());
    inner.Require("step");
    rollup.step_ms = ReadLength(inner, "step", false).value_or(0);
    fields.Fail(inner.Finish());
  }
  return rollups;
}

Json RollupsToJson(const std::vector<Rollup>& rollups) {
  Json list = Json::array();
  for (const Rollup& rollup : rollups)
    list.push_back({{"keys", rollup.keys}, {"step", StepText(rollup.step_ms)}});
  return list;
}

JsonAnswer CreateReport(JsonFields& fields, const ReportsOf& reports_of) {
  const std::string dataset = ReadDataset(fields);
  ReportInfo info{.name = fields.String("report")};
  if (fields.Find("segment_keys") != nullptr) {
    const auto& keys = fields.Array("segment_keys");
    for (size_t i = 0; i < keys.size(); ++i) {
      info.keys.push_back(ReadKey(fields, keys[i], fmt::format("segment_keys[{}]", i)));
    }
  }
  info.metrics = ReadMetrics(fields, "metrics");
  ReportSettings& settings = info.settings;
  settings.resolution_ms = ReadLength(fields, "resolution", false).value_or(settings.resolution_ms);
  const uint64_t period_ms = ReadLength(fields, "period", false).value_or(settings.period_s * 1000);
  if (period_ms % 1000 != 0) fields.Fail("period", "must be a whole number of seconds");
  settings.period_s = period_ms / 1000;
  settings.salts = static_cast<uint32_t>(fields.OptionalUint("salts", 1, kMaxSalts).value_or(settings.salts));
  settings.retention_ms = ReadLength(fields, "retention", true).value_or(0);
  KV_RETURN_IF_ERROR(fields.Finish());
  KV_ASSIGN_OR_RETURN(const auto reports, reports_of(dataset));
  KV_RETURN_IF_ERROR(reports->Create(info));
  return Json::object();
}

JsonAnswer AlterReport(JsonFields& fields, const ReportsOf& reports_of) {
  const std::string dataset = ReadDataset(fields);
  const std::string report = fields.String("report");
  ReportChange change;
  if (const Json* json = fields.Find("add_segment_key"))
    change.add_key = ReadKey(fields, *json, "add_segment_key");
  change.add_metrics = ReadMetrics(fields, "add_metrics");
  change.retention_ms = ReadLength(fields, "retention", true);
  change.rollups = ReadRollups(fields, "rollups");
  KV_RETURN_IF_ERROR(fields.Finish());
  KV_ASSIGN_OR_RETURN(const auto reports, reports_of(dataset));
  KV_RETURN_IF_ERROR(reports->Alter(report, change));
  return Json::object();
}

JsonAnswer WritePoints(JsonFields& fields, const ReportsOf& reports_of) {
  const std::string dataset = ReadDataset(fields);
  const std::string report = fields.String("report");
  WriteBatchOptions options;
  options.batch = fields.OptionalString("batch").value_or("");
  options.add = fields.OptionalBool("add").value_or(false);
  const auto& points = fields.Array("points");
  KV_RETURN_IF_ERROR(fields.Finish());
  KV_ASSIGN_OR_RETURN(const auto reports, reports_of(dataset));
  KV_ASSIGN_OR_RETURN(const Batch batch, ReadPoints(*reports, report, points));
  KV_ASSIGN_OR_RETURN(const uint64_t written, reports->Write(batch, options));
  return Json{{"written", written}};
}

JsonAnswer QueryReport(JsonFields& fields, const ReportsOf& reports_of) {
  const std::string dataset = ReadDataset(fields);
  const Query query = ReadQuery(fields);
  KV_RETURN_IF_ERROR(fields.Finish());
  KV_ASSIGN_OR_RETURN(const auto reports, reports_of(dataset));
  KV_ASSIGN_OR_RETURN(const QueryResult result, reports->Run(query));
  return ResultToJson(query, result);
}

JsonAnswer Info(JsonFields& fields, const ReportsOf& reports_of) {
  const std::string dataset = ReadDataset(fields);
  const std::string report = fields.String("report");
  const auto metrics = fields.OptionalBytesList("metrics");
  KV_RETURN_IF_ERROR(fields.Finish());
  KV_ASSIGN_OR_RETURN(const auto reports, reports_of(dataset));
  KV_ASSIGN_OR_RETURN(const ReportDescription described, reports->Describe(report, metrics));
  const ReportInfo& info = described.info;
  Json keys = Json::array();
  for (const SegmentKey& key : info.keys) {
    Json json{{"name", key.name}};
    if (key.default_value) json["default"] = *key.default_value;
    keys.push_back(std::move(json));
  }
  const ReportSettings& settings = info.settings;
  return Json{{"report", info.name},
              {"segment_keys", std::move(keys)},
              {"segment_values", described.segment_values},
              {"metrics", MetricsToJson(info.metrics)},
              {"resolution", StepText(settings.resolution_ms)},
              {"period", StepText(settings.period_s * 1000)},
              {"salts", settings.salts},
              {"retention", settings.retention_ms == 0 ? "0" : StepText(settings.retention_ms)},
              {"rollups", RollupsToJson(info.rollups)}};
}

JsonAnswer ListMetrics(JsonFields& fields, const ReportsOf& reports_of) {
  const std::string dataset = ReadDataset(fields);
  const std::string report = fields.String("report");
  MetricListing listing;
  listing.prefix = fields.OptionalString("prefix").value_or("");
  listing.after = fields.OptionalString("after").value_or("");
  listing.limit = fields.OptionalUint("limit", 1, kMaxListedMetrics).value_or(listing.limit);
  KV_RETURN_IF_ERROR(fields.Finish());
  KV_ASSIGN_OR_RETURN(const auto reports, reports_of(dataset));
  KV_ASSIGN_OR_RETURN(const MetricPage page, reports->ListMetrics(report, listing));
  return Json{{"metrics", MetricsToJson(page.metrics)}, {"more", page.more}};
}

JsonAnswer DeleteOfPoints(JsonFields& fields, const ReportsOf& reports_of) {
  const std::string dataset = ReadDataset(fields);
  const std::string report = fields.String("report");
  const auto metrics = fields.OptionalBytesList("metrics");
  const int64_t from = ReadTime(fields, "from", absl::UTCTimeZone());
  const int64_t to = ReadTime(fields, "to", absl::UTCTimeZone());
  if (!metrics) fields.Fail("metrics", "missing");
  KV_RETURN_IF_ERROR(fields.Finish());
  KV_ASSIGN_OR_RETURN(const auto reports, reports_of(dataset));
  KV_ASSIGN_OR_RETURN(const uint64_t rows, reports->Delete(report, *metrics, {from, to}));
  return Json{{"rows", rows}};
}

JsonAnswer ListReports(JsonFields& fields, const ReportsOf& reports_of) {
  const std::string dataset = ReadDataset(fields);
  KV_RETURN_IF_ERROR(fields.Finish());
  KV_ASSIGN_OR_RETURN(const auto reports, reports_of(dataset));
  KV_ASSIGN_OR_RETURN(const std::vector<std::string> names, reports->List());
  return Json{{"reports", names}};
}

JsonAnswer Drop(JsonFields& fields, const ReportsOf& reports_of) {
  const std::string dataset = ReadDataset(fields);
  const std::string report = fields.String("report");
  KV_RETURN_IF_ERROR(fields.Finish());
  KV_ASSIGN_OR_RETURN(const auto reports, reports_of(dataset));
  KV_RETURN_IF_ERROR(reports->Drop(report));
  return Json::object();
}

JsonAnswer Compact(JsonFields& fields, const ReportsOf& reports_of) {
  const std::string dataset = ReadDataset(fields);
  const std::string report = fields.String("report");
  KV_RETURN_IF_ERROR(fields.Finish());
  KV_ASSIGN_OR_RETURN(const auto reports, reports_of(dataset));
  KV_ASSIGN_OR_RETURN(const CompactionResult result, reports->Compact(report));
  return Json{{"rows", result.rows},
              {"chunks_merged", result.chunks_merged},
              {"chunks_written", result.chunks_written},
              {"rows_expired", result.rows_expired},
              {"bytes_before", result.bytes_before},
              {"bytes_after", result.bytes_after}};
}

JsonAnswer MakeRollups(JsonFields& fields, const ReportsOf& reports_of) {
  const std::string dataset = ReadDataset(fields);
  const std::string report = fields.String("report");
  KV_RETURN_IF_ERROR(fields.Finish());
  KV_ASSIGN_OR_RETURN(const auto reports, reports_of(dataset));
  KV_ASSIGN_OR_RETURN(const RollupResult result, reports->MakeRollups(report));
  return Json{{"rows", result.rows},
              {"rows_current", result.rows_current},
              {"rows_written", result.rows_written},
              {"bytes_written", result.bytes_written}};
}

}  // namespace

const std::map<std::string, JsonOperation, std::less<>>& JsonOperations() {
  static const std::map<std::string, JsonOperation, std::less<>> kOperations = {
      {"create_report", &CreateReport}, {"alter_report", &AlterReport}, {"write_points", &WritePoints},
      {"query_report", &QueryReport},   {"report_info", &Info},         {"delete_points", &DeleteOfPoints},
      {"list_reports", &ListReports},   {"drop_report", &Drop},         {"compact_report", &Compact},
      {"make_rollups", &MakeRollups},   {"list_metrics", &ListMetrics},
  };
  return kOperations;
}

}  // namespace kvstore::reports
