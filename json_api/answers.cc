#include "json_api/answers.h"

#include <nlohmann/json.hpp>

#include "json/bytes_json.h"

namespace kvstore::json_api {

Json ItemsToJson(std::span<const Item> items) {
  Json list = Json::array();
  for (const Item& item : items) {
    Json cells = Json::array();
    for (const Cell& cell : item.cells) {
      cells.push_back({{"timestamp", cell.timestamp}, {"value", BytesToJson(cell.value)}});
    }
    list.push_back({{"column", BytesToJson(item.column)}, {"cells", std::move(cells)}});
  }
  return list;
}

Json MarkerToJson(std::string_view marker) { return marker.empty() ? Json() : Json(marker); }

Json RowToJson(std::string_view key, const Row& row) {
  return {{"row", BytesToJson(key)}, {"items", ItemsToJson(row.items)}, {"marker", MarkerToJson(row.marker)}};
}

absl::StatusOr<Json> ObjectToJson(const Object& object) {
  auto data = ParseStoredJson(object.data);
  if (!data.ok()) return absl::DataLossError("a stored object is not JSON");
  return Json{{"data", *std::move(data)}, {"timestamp", object.timestamp}};
}

Json MappingToJson(const MappingPage& page) {
  Json entries = Json::array();
  for (const MappingEntry& entry : page.entries) {
    entries.push_back({{"to", std::to_string(entry.to)}, {"sequence", entry.sequence}});
  }
  return {{"entries", std::move(entries)}, {"marker", MarkerToJson(page.marker)}};
}

Json ErrorToJson(const absl::Status& status) {
  return {{"ok", false},
          {"error",
           {{"code", absl::StatusCodeToString(status.code())}, {"message", std::string(status.message())}}}};
}

}  // namespace kvstore::json_api
