#include "json_api/answers.h"

#include <nlohmann/json.hpp>

#include "backend_api/outcome.h"
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

Json ScannedRowToJson(const ScannedRow& row) {
  return {{"row", BytesToJson(row.key)}, {"items", ItemsToJson(row.items)}};
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

absl::StatusOr<Json> ObjectsToJson(const ObjectPage& page) {
  Json objects = Json::array();
  for (const Object& object : page.objects) {
    auto one = ObjectToJson(object);
    if (!one.ok()) return one;
    (*one)["object_id"] = std::to_string(object.id);
    objects.push_back(*std::move(one));
  }
  return Json{{"objects", std::move(objects)}, {"marker", MarkerToJson(page.marker)}};
}

Json MappingToJson(const MappingPage& page) {
  Json entries = Json::array();
  for (const MappingEntry& entry : page.entries) {
    entries.push_back({{"to", std::to_string(entry.to)}, {"sequence", entry.sequence}});
  }
  return {{"entries", std::move(entries)}, {"marker", MarkerToJson(page.marker)}};
}

Json MappingsToJson(const ScannedMappingPage& page) {
  Json entries = Json::array();
  for (const ScannedMapping& entry : page.entries) {
    entries.push_back({{"from", std::to_string(entry.from)},
                       {"to", std::to_string(entry.to)},
                       {"sequence", entry.sequence}});
  }
  return {{"entries", std::move(entries)}, {"marker", MarkerToJson(page.marker)}};
}

Json WithOk(Json answer) {
  answer["ok"] = true;
  return answer;
}

Json ErrorToJson(const absl::Status& status) {
  Json error = {{"code", absl::StatusCodeToString(status.code())},
                {"message", std::string(status.message())}};
  if (IsInDoubt(status)) error["in_doubt"] = true;
  return {{"ok", false}, {"error", std::move(error)}};
}

}  // namespace kvstore::json_api
