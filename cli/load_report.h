#pragma once

#include <string>

#include "kvstore_api/json.h"

namespace kvstore::cli {

/// Shows what a load measured (docs/json-lines.md): as a table, or as it is.
///
/// html  File for a page with pictures besides; empty: none.
void ShowLoad(const Json& report, bool json, const std::string& html);

}  // namespace kvstore::cli
