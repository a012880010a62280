#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "json/json_fields.h"
#include "reports/reports.h"

namespace kvstore::reports {

/// The dataset that has the reports unless a request names another by "dataset".
inline constexpr char kDefaultDataset[] = "reports";

/// Returns the reports of a dataset, by its name.
using ReportsOf = std::function<absl::StatusOr<std::unique_ptr<Reports>>(const std::string& dataset)>;

/// The fields of an answer beside "ok".
using JsonAnswer = absl::StatusOr<Json>;
using JsonOperation = JsonAnswer (*)(JsonFields& fields, const ReportsOf& reports_of);

/// The operations on reports, by name: create_report, alter_report, write_points, query_report, report_info,
/// list_metrics, delete_points, list_reports, drop_report, compact_report, make_rollups. docs/json-lines.md
/// describes them.
///
/// Each reads all fields of the request but "op" and "id", which its caller has read, and refuses those that
/// it does not know: INVALID_ARGUMENT names the field.
const std::map<std::string, JsonOperation, std::less<>>& JsonOperations();

}  // namespace kvstore::reports
