#pragma once

#include <string>
#include <vector>

#include "json/json_fields.h"
#include "kvstore_api/types.h"

namespace kvstore::json_api {

/// The items of a put, as read from JSON.
struct PutItems {
  std::vector<std::string> bytes;  ///< The memory that the cells point into.
  std::vector<CellWrite> cells;
};

/// Reads `items: [{column, value, timestamp?}]`. Mistakes are recorded in `fields`.
PutItems ReadItems(JsonFields& fields);

/// The same, but an item may also have the form in which a scan returns it (ItemsToJson):
/// `{column, cells: [{timestamp, value}]}`, with at least one cell.
PutItems ReadPutOrScannedItems(JsonFields& fields);

}  // namespace kvstore::json_api
