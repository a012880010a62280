#include "json_api/answers.h"

#include <nlohmann/json.hpp>
#include <string>
#include <variant>

#include "backend_api/outcome.h"
#include "json/bytes_json.h"

namespace kvstore::json_api {

namespace {

Json CellsToJson(std::span<const Cell> cells) {
  Json list = Json::array();
  for (const Cell& cell : cells) {
    list.push_back({{"timestamp", cell.timestamp}, {"value", BytesToJson(cell.value)}});
  }
  return list;
}

absl::StatusOr<Json> StoredDocument(std::string_view text) {
  auto data = ParseStoredJson(text);
  if (!data.ok()) return absl::DataLossError("a stored object is not JSON");
  return data;
}

absl::Status AddChange(const RowChange& change, Json& json) {
  json["row"] = BytesToJson(change.row);
  if (change.column) json["column"] = BytesToJson(*change.column);
  json["cells"] = CellsToJson(change.cells);
  if (change.more) json["more"] = true;
  return absl::OkStatus();
}

absl::Status AddChange(const ObjectChange& change, Json& json) {
  json["object_id"] = std::to_string(change.id);
  json["data"] = nullptr;
  if (!change.data) return absl::OkStatus();
  auto data = StoredDocument(*change.data);
  if (!data.ok()) return data.status();
  json["data"] = *std::move(data);
  json["timestamp"] = change.timestamp;
  return absl::OkStatus();
}

absl::Status AddChange(const MappingChange& change, Json& json) {
  json["from"] = std::to_string(change.from);
  json["to"] = std::to_string(change.to);
  json["sequence"] = change.sequence ? Json(*change.sequence) : Json();
  return absl::OkStatus();
}

}  // namespace

Json ItemsToJson(std::span<const Item> items) {
  Json list = Json::array();
  for (const Item& item : items) {
    list.push_back({{"column", BytesToJson(item.column)}, {"cells", CellsToJson(item.cells)}});
  }
  return list;
}

absl::StatusOr<Json> ChangeToJson(const Change& change) {
  Json json = {{"token", change.token}, {"at", change.at_ms}};
  absl::Status added = std::visit([&](const auto& what) { return AddChange(what, json); }, change.what);
  if (!added.ok()) return added;
  return json;
}

Json ConsumerToJson(const ChangeConsumer& consumer) {
  return {{"name", consumer.name},
          {"token", MarkerToJson(consumer.token)},
          {"set_at", consumer.set_ms},
          {"lag_ms", consumer.lag_ms}};
}

Json ScannedRowToJson(const ScannedRow& row) {
  return {{"row", BytesToJson(row.key)}, {"items", ItemsToJson(row.items)}};
}

Json MarkerToJson(std::string_view marker) { return marker.empty() ? Json() : Json(marker); }

Json RowToJson(std::string_view key, const Row& row) {
  return {{"row", BytesToJson(key)}, {"items", ItemsToJson(row.items)}, {"marker", MarkerToJson(row.marker)}};
}

absl::StatusOr<Json> ObjectToJson(const Object& object) {
  auto data = StoredDocument(object.data);
  if (!data.ok()) return data;
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
