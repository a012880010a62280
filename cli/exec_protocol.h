#pragma once

#include <string>
#include <string_view>

#include "kvstore_api/json.h"
#include "kvstore_api/json_fields.h"
#include "kvstore_api/kvstore.h"

/// The store as JSON lines: what a request means. docs/json-lines.md is the reference.
namespace kvstore::cli {

/// Carries out one request, given as a line of JSON, and returns the answer as a line of JSON without its
/// end. Never throws, never ends the process: whatever is wrong is in the answer.
std::string Execute(KVStore& store, std::string_view line);

/// The items of a put, as read from JSON.
struct PutItems {
  std::vector<std::string> bytes;  ///< What the cells point into.
  std::vector<CellWrite> cells;
};

/// Reads `items: [{column, value, timestamp?}]`. Mistakes are left in `fields`.
PutItems ReadItems(JsonFields& fields);

}  // namespace kvstore::cli
