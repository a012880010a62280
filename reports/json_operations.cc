#include "reports/json_operations.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "json/bytes_json.h"
#include "reports/batch.h"
#include "reports/compaction.h"
#include "reports/deletes.h"
#include "reports/json_points.h"
#include "reports/json_query.h"
#include "reports/json_times.h"
#include "reports/run_query.h"
#include "reports/status_macros.h"
#include "reports/writer.h"

namespace kvstore::reports {
namespace {

Metadata ReadDataset(JsonFields& fields, KVStore& store) {
  return Metadata(store, fields.OptionalString("dataset").value_or(kDefaultDataset));
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

JsonAnswer CreateReport(JsonFields& fields, KVStore& store) {
  const Metadata metadata = ReadDataset(fields, store);
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
  KV_RETURN_IF_ERROR(metadata.Create(info).status());
  return Json::object();
}

JsonAnswer AlterReport(JsonFields& fields, KVStore& store) {
  const Metadata metadata = ReadDataset(fields, store);
  const std::string report = fields.String("report");
  std::optional<SegmentKey> key;
  if (const Json* json = fields.Find("add_segment_key")) key = ReadKey(fields, *json, "add_segment_key");
  const std::vector<Metric> metrics = ReadMetrics(fields, "add_metrics");
  const auto retention = ReadLength(fields, "retention", true);
  if (fields.Find("rollups") != nullptr)
    fields.Fail("rollups", "this version has no roll-ups; leave the field out");
  KV_RETURN_IF_ERROR(fields.Finish());
  KV_RETURN_IF_ERROR(metadata.Get(report, {}).status());
  if (key) KV_RETURN_IF_ERROR(metadata.AddKey(report, *key));
  KV_RETURN_IF_ERROR(metadata.AddMetrics(report, metrics));
  if (retention) KV_RETURN_IF_ERROR(metadata.SetRetention(report, *retention));
  return Json::object();
}

JsonAnswer WritePoints(JsonFields& fields, KVStore& store) {
  const Metadata metadata = ReadDataset(fields, store);
  const std::string report = fields.String("report");
  WriteBatchOptions options;
  options.batch = fields.OptionalString("batch").value_or("");
  options.add = fields.OptionalBool("add").value_or(false);
  const auto& points = fields.Array("points");
  KV_RETURN_IF_ERROR(fields.Finish());
  KV_ASSIGN_OR_RETURN(const Batch batch, ReadPoints(metadata, report, points));
  KV_ASSIGN_OR_RETURN(const uint64_t written, WriteBatch(metadata, batch, options));
  return Json{{"written", written}};
}

JsonAnswer QueryReport(JsonFields& fields, KVStore& store) {
  const Metadata metadata = ReadDataset(fields, store);
  const Query query = ReadQuery(fields);
  KV_RETURN_IF_ERROR(fields.Finish());
  KV_ASSIGN_OR_RETURN(const QueryResult result, RunQuery(metadata, query));
  return ResultToJson(result);
}

JsonAnswer Info(JsonFields& fields, KVStore& store) {
  const Metadata metadata = ReadDataset(fields, store);
  const std::string report = fields.String("report");
  const auto metrics = fields.OptionalBytesList("metrics");
  KV_RETURN_IF_ERROR(fields.Finish());
  KV_ASSIGN_OR_RETURN(const ReportInfo info,
                      metrics ? metadata.Get(report, *metrics) : metadata.GetAll(report));
  Json keys = Json::array();
  Json values = Json::object();
  for (uint32_t key = 0; key < info.keys.size(); ++key) {
    Json json{{"name", info.keys[key].name}};
    if (info.keys[key].default_value) json["default"] = *info.keys[key].default_value;
    keys.push_back(std::move(json));
    KV_ASSIGN_OR_RETURN(values[info.keys[key].name], metadata.AllValues(report, key));
  }
  const ReportSettings& settings = info.settings;
  return Json{{"report", info.name},
              {"segment_keys", std::move(keys)},
              {"segment_values", std::move(values)},
              {"metrics", MetricsToJson(info.metrics)},
              {"resolution", StepText(settings.resolution_ms)},
              {"period", StepText(settings.period_s * 1000)},
              {"salts", settings.salts},
              {"retention", settings.retention_ms == 0 ? "0" : StepText(settings.retention_ms)}};
}

JsonAnswer DeleteOfPoints(JsonFields& fields, KVStore& store) {
  const Metadata metadata = ReadDataset(fields, store);
  const std::string report = fields.String("report");
  const auto metrics = fields.OptionalBytesList("metrics");
  const int64_t from = ReadTime(fields, "from", absl::UTCTimeZone());
  const int64_t to = ReadTime(fields, "to", absl::UTCTimeZone());
  if (!metrics) fields.Fail("metrics", "missing");
  KV_RETURN_IF_ERROR(fields.Finish());
  KV_ASSIGN_OR_RETURN(const ReportInfo info, metadata.Get(report, *metrics));
  for (const std::string& name : *metrics) {
    if (info.FindMetric(name) == nullptr) {
      return absl::NotFoundError(fmt::format("metrics: report '{}' has no metric '{}'", report, name));
    }
  }
  KV_ASSIGN_OR_RETURN(const uint64_t rows, DeletePoints(metadata, info, {from, to}));
  return Json{{"rows", rows}};
}

JsonAnswer ListReports(JsonFields& fields, KVStore& store) {
  const Metadata metadata = ReadDataset(fields, store);
  KV_RETURN_IF_ERROR(fields.Finish());
  KV_ASSIGN_OR_RETURN(const std::vector<std::string> reports, metadata.List());
  return Json{{"reports", reports}};
}

JsonAnswer Drop(JsonFields& fields, KVStore& store) {
  const Metadata metadata = ReadDataset(fields, store);
  const std::string report = fields.String("report");
  KV_RETURN_IF_ERROR(fields.Finish());
  KV_RETURN_IF_ERROR(DropReport(metadata, report));
  return Json::object();
}

JsonAnswer Compact(JsonFields& fields, KVStore& store) {
  const Metadata metadata = ReadDataset(fields, store);
  const std::string report = fields.String("report");
  KV_RETURN_IF_ERROR(fields.Finish());
  KV_ASSIGN_OR_RETURN(const CompactionResult result, CompactReport(metadata, report, {}));
  return Json{{"rows", result.rows},
              {"chunks_merged", result.chunks_merged},
              {"chunks_written", result.chunks_written},
              {"rows_expired", result.rows_expired},
              {"bytes_before", result.bytes_before},
              {"bytes_after", result.bytes_after}};
}

}  // namespace

const std::map<std::string, JsonOperation, std::less<>>& JsonOperations() {
  static const std::map<std::string, JsonOperation, std::less<>> kOperations = {
      {"create_report", &CreateReport}, {"alter_report", &AlterReport}, {"write_points", &WritePoints},
      {"query_report", &QueryReport},   {"report_info", &Info},         {"delete_points", &DeleteOfPoints},
      {"list_reports", &ListReports},   {"drop_report", &Drop},         {"compact_report", &Compact},
  };
  return kOperations;
}

JsonAnswer RunJsonOperation(KVStore& store, const Json& request) {
  JsonFields fields(request, "");
  fields.Find("id");
  const std::string name = fields.String("op");
  const auto found = JsonOperations().find(name);
  if (found != JsonOperations().end()) return found->second(fields, store);
  fields.Fail("op", fmt::format("there is no operation '{}'", name));
  return fields.Finish();
}

}  // namespace kvstore::reports
