#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "json/json_fields.h"
#include "kvstore_api/kvstore.h"
#include "reports/json_operations.h"

/// The store, and its reports, by JSON lines. docs/json-lines.md is the reference.
namespace kvstore::json_api {

/// Carries out one request, given as a line of JSON, and returns the answer as a line of JSON without a line
/// break. Never throws and never ends the process: every error is in the answer. Thread-safe.
///
/// reports_of  Returns the reports of a dataset, for the operations on reports.
std::string Execute(KVStore& store, const reports::ReportsOf& reports_of, std::string_view line);

/// The same with the reports of the store in this process (LocalReports).
std::string Execute(KVStore& store, std::string_view line);

/// Carries out the operation of this name, and returns the fields of its answer beside "ok". INVALID_ARGUMENT
/// if there is none, or its request has a mistake. Never throws. Thread-safe.
///
/// fields  Its request. The caller has asked it for "op" and "id" if the request may have them.
absl::StatusOr<Json> ExecuteOperation(const std::string& op, JsonFields& fields, KVStore& store,
                                      const reports::ReportsOf& reports_of);

}  // namespace kvstore::json_api
