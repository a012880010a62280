#include "json_api/put_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kvstore_api/limits.h"

namespace kvstore::json_api {
namespace {

/// Returns the fields of one element of a list.
JsonFields Element(JsonFields& fields, std::string_view list, const std::vector<Json>& elements, size_t i) {
  return {elements[i], fields.Path(fmt::format("{}[{}].", list, i))};
}

void ReadPutItem(JsonFields& item, PutItems& items) {
  const std::string& column = items.bytes.emplace_back(item.Bytes("column"));
  const std::string& value = items.bytes.emplace_back(item.Bytes("value"));
  const auto timestamp = item.OptionalUint("timestamp", 0, kMaxTimestamp);
  items.cells.push_back({column, value, timestamp});
}

void ReadScannedItem(JsonFields& item, PutItems& items) {
  const std::string& column = items.bytes.emplace_back(item.Bytes("column"));
  const auto& cells = item.Array("cells");
  if (cells.empty()) item.Fail("cells", "must be an array with at least one cell");
  for (size_t i = 0; i < cells.size(); ++i) {
    JsonFields cell = Element(item, "cells", cells, i);
    const std::string& value = items.bytes.emplace_back(cell.Bytes("value"));
    const uint64_t timestamp = cell.Uint("timestamp", 0, kMaxTimestamp);
    items.cells.push_back({column, value, timestamp});
    item.Fail(cell.Finish());
  }
}

/// Returns how many strings an item may have: its column, and its value or those of its cells.
size_t CountStrings(const Json& item) {
  const auto cells = item.is_object() ? item.find("cells") : item.end();
  return 1 + (cells == item.end() ? 1 : std::max<size_t>(1, cells->size()));
}

PutItems Read(JsonFields& fields, bool scanned_too) {
  PutItems items;
  const auto& list = fields.Array("items");
  size_t strings = 0;
  for (const Json& item : list) strings += CountStrings(item);
  items.bytes.reserve(strings);  // the cells point into it
  for (size_t i = 0; i < list.size(); ++i) {
    JsonFields item = Element(fields, "items", list, i);
    if (scanned_too && item.Find("cells") != nullptr) {
      ReadScannedItem(item, items);
    } else {
      ReadPutItem(item, items);
    }
    fields.Fail(item.Finish());
  }
  return items;
}

}  // namespace

PutItems ReadItems(JsonFields& fields) { return Read(fields, false); }

PutItems ReadPutOrScannedItems(JsonFields& fields) { return Read(fields, true); }

}  // namespace kvstore::json_api
