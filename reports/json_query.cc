#include "reports/json_query.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "reports/json_times.h"

namespace kvstore::reports {
namespace {

absl::TimeZone ReadZone(JsonFields& fields) {
  const auto zone = LoadZone(fields.OptionalString("timezone").value_or("UTC"));
  if (zone.ok()) return *zone;
  fields.Fail(zone.status());
  return absl::UTCTimeZone();
}

QueryMetric ReadMetric(JsonFields& fields, const Json& json, size_t index) {
  if (json.is_string()) return {.name = json.get<std::string>()};
  JsonFields inner(json, fields.Path(fmt::format("metrics[{}].", index)));
  QueryMetric metric{.name = inner.String("name"),
                     .expression = inner.OptionalString("expression").value_or("")};
  fields.Fail(inner.Finish());
  return metric;
}

QueryFilter ReadFilter(JsonFields& fields, const Json& json, size_t index) {
  JsonFields inner(json, fields.Path(fmt::format("filters[{}].", index)));
  QueryFilter filter{.name = inner.OptionalString("name").value_or("")};
  const Json* where = inner.Find("where");
  if (where != nullptr && !where->is_object())
    inner.Fail("where", "must be an object: {\"country\": [\"US\", \"CA\"]}");
  if (where != nullptr && where->is_object()) {
    for (const auto& [key, values] : where->items()) {
      auto& wanted = filter.where[key];
      if (values == "*") continue;
      JsonFields list(*where, inner.Path("where."));
      if (values.is_array()) wanted = list.OptionalBytesList(key);
      if (!wanted) inner.Fail("where." + key, "must be a list of values, or \"*\"");
    }
  }
  fields.Fail(inner.Finish());
  return filter;
}

void ReadTop(JsonFields& fields, Query& query) {
  const Json* json = fields.Find("top");
  if (json == nullptr) return;
  JsonFields inner(*json, fields.Path("top."));
  QueryTop top{.n = inner.Uint("n", 1, 100'000), .by = query.function};
  if (const auto by = inner.OptionalString("by")) {
    const auto function = ParseFunction("top.by", *by);
    if (function.ok()) {
      top.by = *function;
    } else {
      fields.Fail(function.status());
    }
  }
  fields.Fail(inner.Finish());
  query.top = top;
}

Fill ReadFill(JsonFields& fields) {
  const std::string fill = fields.OptionalString("fill").value_or("none");
  if (fill == "zero") return Fill::kZero;
  if (fill == "previous") return Fill::kPrevious;
  if (fill != "none") fields.Fail("fill", "must be none, zero or previous");
  return Fill::kNone;
}

void ReadCompare(JsonFields& fields, Query& query) {
  const auto text = fields.OptionalString("compare_to");
  if (!text) return;
  const bool sign = !text->empty() && (text->front() == '-' || text->front() == '+');
  const auto step = ParseStep(sign ? text->substr(1) : "");
  if (!step.ok()) {
    fields.Fail("compare_to", "must be a sign and a stretch of time: \"-7d\"");
    return;
  }
  query.compare_step = *step;
  query.compare_sign = text->front() == '-' ? -1 : 1;
}

Json PointsToJson(const std::vector<TimeValue>& points) {
  Json list = Json::array();
  for (const auto& [time, value] : points) list.push_back(Json::array({time, NumberToJson(value)}));
  return list;
}

Json CostToJson(const QueryCost& cost) {
  return {{"rows", cost.rows},
          {"chunks", cost.chunks},
          {"chunks_skipped", cost.chunks_skipped},
          {"bytes", cost.bytes},
          {"from_rollups", cost.from_rollups},
          {"ms", cost.ms}};
}

}  // namespace

Query ReadQuery(JsonFields& fields) {
  Query query;
  query.report = fields.String("report");
  const auto& metrics = fields.Array("metrics");
  for (size_t i = 0; i < metrics.size(); ++i) query.metrics.push_back(ReadMetric(fields, metrics[i], i));
  query.zone = ReadZone(fields);
  query.from = ReadTime(fields, "from", query.zone);
  query.to = ReadTime(fields, "to", query.zone);
  query.step = ReadStep(fields, "step");
  if (fields.Find("filters") != nullptr) {
    const auto& filters = fields.Array("filters");
    for (size_t i = 0; i < filters.size(); ++i) query.filters.push_back(ReadFilter(fields, filters[i], i));
  }
  query.group_by = fields.OptionalBytesList("group_by").value_or(std::vector<std::string>());
  const auto function = ParseFunction("function", fields.OptionalString("function").value_or("sum"));
  if (function.ok()) {
    query.function = *function;
  } else {
    fields.Fail(function.status());
  }
  ReadTop(fields, query);
  query.fill = ReadFill(fields);
  ReadCompare(fields, query);
  query.partial = fields.OptionalBool("partial").value_or(false);
  query.explain = fields.OptionalBool("explain").value_or(false);
  return query;
}

Json ResultToJson(const Query& query, const QueryResult& result) {
  Json series = Json::array();
  for (const ResultSeries& one : result.series) {
    Json segments = Json::object();
    for (const auto& [key, value] : one.segments) segments[key] = value;
    Json json{
        {"metric", one.metric}, {"segments", std::move(segments)}, {"points", PointsToJson(one.points)}};
    if (!one.filter.empty()) json["filter"] = one.filter;
    if (one.compared) json["compared"] = PointsToJson(*one.compared);
    series.push_back(std::move(json));
  }
  Json answer{
      {"series", std::move(series)}, {"partial", !result.missing.empty()}, {"cost", CostToJson(result.cost)}};
  if (!result.missing.empty()) answer["missing"] = result.missing;
  if (!query.explain) return answer;
  Json parts = Json::array();
  for (const PartCost& part : result.parts) {
    Json json = CostToJson(part.cost);
    json["metric"] = part.metric;
    json["salt"] = part.salt;
    parts.push_back(std::move(json));
  }
  answer["parts"] = std::move(parts);
  return answer;
}

}  // namespace kvstore::reports
