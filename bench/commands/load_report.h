#pragma once

#include <string>

#include "bench/harness/load.h"
#include "json/json.h"

namespace kvstore::bench {

/// Returns the fields with which all reports of loads begin.
///
/// store  Where the store is: "server", "as configured", "embedded".
Json NewLoadReport(const char* workload, std::string store, const LoadOptions& load);

/// Prints the report of a load (docs/json-lines.md) as a table, or as JSON.
///
/// html  file for the report as a page with pictures, in addition; empty: none.
void ShowLoad(const Json& report, bool json, const std::string& html);

}  // namespace kvstore::bench
