#pragma once

#include <string>
#include <string_view>

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

}  // namespace kvstore::json_api
