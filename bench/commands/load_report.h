#pragma once

#include <string>

#include "json/json.h"

namespace kvstore::bench {

/// Prints the report of a load (docs/json-lines.md) as a table, or as JSON.
///
/// html  file for the report as a page with pictures, in addition; empty: none.
void ShowLoad(const Json& report, bool json, const std::string& html);

}  // namespace kvstore::bench
