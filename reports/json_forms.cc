#include "reports/json_forms.h"

#include <utility>

namespace kvstore::reports {
namespace {

/// Returns the fields of a request on one report: its dataset and its name come first in all of them.
std::vector<JsonFormField> OnReport(std::vector<JsonFormField> others = {}) {
  std::vector<JsonFormField> fields = {OptionalField("dataset", "Text"), RequiredField("report", "Text")};
  fields.insert(fields.end(), others.begin(), others.end());
  return fields;
}

}  // namespace

std::map<std::string, JsonForm, std::less<>> JsonForms() {
  std::map<std::string, JsonForm, std::less<>> forms;
  forms["create_report"] = {
      .summary = "Creates a report, and its dataset if there is none yet",
      .request = OnReport({OptionalField("segment_keys", "SegmentKeys"), OptionalField("metrics", "Metrics"),
                           OptionalField("resolution", "Duration"), OptionalField("period", "Duration"),
                           OptionalField("salts", "Uint"), OptionalField("retention", "Duration")})};
  forms["alter_report"] = {
      .summary = "Adds keys and metrics to a report, changes its retention or its roll-ups",
      .request =
          OnReport({OptionalField("add_segment_key", "SegmentKey"), OptionalField("add_metrics", "Metrics"),
                    OptionalField("retention", "Duration"), OptionalField("rollups", "Rollups")})};
  forms["drop_report"] = {.summary = "Removes a report with all of its points", .request = OnReport()};
  forms["list_reports"] = {.summary = "Returns the names of all reports that the caller may read",
                           .get = "/v1/reports",
                           .request = {OptionalField("dataset", "Text")},
                           .answer = {RequiredField("reports", "Texts")}};
  forms["report_info"] = {
      .summary = "Describes a report",
      .get = "/v1/reports/{report}",
      .request = OnReport({OptionalField("metrics", "BytesList")}),
      .answer = {RequiredField("report", "Text"), RequiredField("segment_keys", "SegmentKeys"),
                 RequiredField("segment_values", "SegmentValues"), RequiredField("metrics", "Metrics"),
                 RequiredField("resolution", "Duration"), RequiredField("period", "Duration"),
                 RequiredField("salts", "Uint"), RequiredField("retention", "Duration"),
                 RequiredField("rollups", "Rollups")}};
  forms["list_metrics"] = {
      .summary = "Returns metrics of a report by the beginning of their names",
      .get = "/v1/reports/{report}/metrics",
      .request = OnReport(
          {OptionalField("prefix", "Text"), OptionalField("after", "Text"), OptionalField("limit", "Uint")}),
      .answer = {RequiredField("metrics", "Metrics"), RequiredField("more", "Flag")}};
  forms["write_points"] = {
      .summary = "Writes points; with a `batch` they are written once, however often it is sent",
      .request = OnReport(
          {OptionalField("batch", "Text"), OptionalField("add", "Flag"), RequiredField("points", "Points")}),
      .answer = {RequiredField("written", "Uint")}};
  forms["query_report"] = {
      .summary = "Answers a query over a span of time",
      .request = OnReport({RequiredField("metrics", "QueryMetrics"), RequiredField("from", "Time"),
                           RequiredField("to", "Time"), OptionalField("step", "Duration"),
                           OptionalField("timezone", "Text"), OptionalField("filters", "Filters"),
                           OptionalField("group_by", "BytesList"), OptionalField("function", "Text"),
                           OptionalField("top", "Top"), OptionalField("fill", "Fill"),
                           OptionalField("compare_to", "Text"), OptionalField("partial", "Flag"),
                           OptionalField("explain", "Flag")}),
      .answer = {RequiredField("series", "SeriesList"), RequiredField("partial", "Flag"),
                 RequiredField("cost", "Cost"), OptionalField("missing", "Texts"),
                 OptionalField("parts", "PartCosts")}};
  forms["delete_points"] = {.summary = "Deletes the points of metrics in a span of time",
                            .request = OnReport({RequiredField("metrics", "BytesList"),
                                                 RequiredField("from", "Time"), RequiredField("to", "Time")}),
                            .answer = {RequiredField("rows", "Uint")}};
  forms["compact_report"] = {
      .summary = "Merges chunks of a report, and removes what is past its retention",
      .request = OnReport(),
      .answer = {RequiredField("rows", "Uint"), RequiredField("chunks_merged", "Uint"),
                 RequiredField("chunks_written", "Uint"), RequiredField("rows_expired", "Uint"),
                 RequiredField("bytes_before", "Uint"), RequiredField("bytes_after", "Uint")}};
  forms["make_rollups"] = {
      .summary = "Makes the roll-ups of a report again where they are not up to date",
      .request = OnReport(),
      .answer = {RequiredField("rows", "Uint"), RequiredField("rows_current", "Uint"),
                 RequiredField("rows_written", "Uint"), RequiredField("bytes_written", "Uint")}};
  return forms;
}

}  // namespace kvstore::reports
