#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "json/json_fields.h"
#include "kvstore_api/kvstore.h"

namespace kvstore::reports {

/// The dataset that has the reports unless a request names another by "dataset".
inline constexpr char kDefaultDataset[] = "reports";

/// The fields of an answer beside "ok".
using JsonAnswer = absl::StatusOr<Json>;
using JsonOperation = JsonAnswer (*)(JsonFields& fields, KVStore& store);

/// The operations on reports, by name: create_report, alter_report, write_points, query_report, report_info,
/// delete_points, list_reports, drop_report, compact_report.
///
/// Each reads all fields of the request but "op" and "id", which its caller has read, and refuses those that
/// it does not know: INVALID_ARGUMENT names the field.
const std::map<std::string, JsonOperation, std::less<>>& JsonOperations();

/// Carries out one request, {"op": ..., ...}. INVALID_ARGUMENT for an operation that there is none of.
JsonAnswer RunJsonOperation(KVStore& store, const Json& request);

}  // namespace kvstore::reports
