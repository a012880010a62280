#include <fmt/format.h>

#include <limits>

#include "json_api/operations.h"
#include "kvstore_api/limits.h"

namespace kvstore::json_api {
namespace {

constexpr uint64_t kMaxUint64 = std::numeric_limits<uint64_t>::max();

/// Reads the IDs that a scan walks.
IdRange ReadIdRange(JsonFields& fields) {
  IdRange range;
  range.start = fields.OptionalUint("start_id", 0, kMaxId).value_or(range.start);
  range.end = fields.OptionalUint("end_id", 0, kMaxId + 1).value_or(range.end);
  return range;
}

struct MappingListRequest {
  std::string dataset;
  uint64_t from = 0;
  MappingListOptions options;
};

MappingListRequest ReadMappingList(JsonFields& fields) {
  MappingListRequest request;
  request.dataset = fields.String("dataset");
  request.from = fields.Uint("from", 0, kMaxId);
  MappingListOptions& options = request.options;
  const std::string order = fields.OptionalString("order").value_or("asc");
  if (order == "desc") {
    options.order = MappingListOptions::Order::kDescending;
  } else if (order != "asc") {
    fields.Fail("order", "must be \"asc\" or \"desc\"");
  }
  options.limit =
      static_cast<uint32_t>(fields.OptionalUint("limit", 1, kMaxListEntries).value_or(options.limit));
  options.offset = fields.OptionalUint("offset", 0, kMaxUint64).value_or(0);
  options.marker = ReadMarker(fields);
  return request;
}

/// The fields that ReadMappingList reads.
std::vector<JsonFormField> MappingListFields() {
  return {RequiredField("dataset", "Text"), RequiredField("from", "Uint"),
          OptionalField("order", "Order"),  OptionalField("limit", "Uint"),
          OptionalField("offset", "Uint"),  OptionalField("marker", "Marker")};
}

}  // namespace

// ---- objects ----

Answer CreateObject(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const Json* data = fields.Require("data");
  CreateOptions options;
  options.near = fields.OptionalUint("near", 0, kMaxUint64);
  if (auto shard = fields.OptionalUint("shard", 0, 65535)) options.shard = static_cast<uint32_t>(*shard);
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto id = store.CreateObject(dataset, data->dump(), options);
  if (!id.ok()) return id.status();
  return Json{{"object_id", std::to_string(*id)}};
}

JsonForm CreateObjectForm() {
  return {.summary = "Stores a JSON object, and returns its new ID",
          .request = {RequiredField("dataset", "Text"), RequiredField("data", "Document"),
                      OptionalField("near", "Uint"), OptionalField("shard", "Uint")},
          .answer = {RequiredField("object_id", "Uint")}};
}

Answer GetObject(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const uint64_t id = fields.Uint("object_id", 0, kMaxUint64);
  const ObjectReadOptions options{.include_inactive =
                                      fields.OptionalBool("include_inactive").value_or(false)};
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto object = store.GetObject(dataset, id, options);
  if (!object.ok()) return object.status();
  return ObjectToJson(*object);
}

JsonForm GetObjectForm() {
  return {.summary = "Returns an object",
          .get = "/v1/datasets/{dataset}/objects/{object_id}",
          .request = {RequiredField("dataset", "Text"), RequiredField("object_id", "Uint"),
                      OptionalField("include_inactive", "Flag")},
          .answer = {RequiredField("data", "Document"), RequiredField("timestamp", "Timestamp")}};
}

Answer GetObjects(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  std::vector<uint64_t> ids;
  const auto& list = fields.Array("object_ids");
  for (size_t i = 0; i < list.size(); ++i) {
    const auto id = UintFromJson(list[i]);
    if (!id) fields.Fail(fmt::format("object_ids[{}]", i), "must be an ID: a number or its decimal string");
    ids.push_back(id.value_or(0));
  }
  const ObjectReadOptions options{.include_inactive =
                                      fields.OptionalBool("include_inactive").value_or(false)};
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto objects = store.GetObjects(dataset, ids, options);
  if (!objects.ok()) return objects.status();
  return ResultsToJson(*objects, [&](size_t i) -> Answer {
    const auto& object = (*objects)[i];
    if (!object.ok()) return object.status();
    return ObjectToJson(*object);
  });
}

JsonForm GetObjectsForm() {
  return {.summary = "Returns 1 to 10,000 objects, each with its own status",
          .request = {RequiredField("dataset", "Text"), RequiredField("object_ids", "Uints"),
                      OptionalField("include_inactive", "Flag")},
          .answer = {RequiredField("results", "ObjectResults")}};
}

Answer UpdateObject(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const uint64_t id = fields.Uint("object_id", 0, kMaxUint64);
  const Json* patch = fields.Require("merge_patch");
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto object = store.PatchObject(dataset, id, patch->dump(), {});
  if (!object.ok()) return object.status();
  const auto json = ObjectToJson(*object);
  if (!json.ok()) return json.status();
  return Json{{"data", (*json)["data"]}};
}

JsonForm UpdateObjectForm() {
  return {.summary = "Changes an object by a merge patch (RFC 7396), and returns it",
          .request = {RequiredField("dataset", "Text"), RequiredField("object_id", "Uint"),
                      RequiredField("merge_patch", "Document")},
          .answer = {RequiredField("data", "Document")}};
}

Answer DeleteObject(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const uint64_t id = fields.Uint("object_id", 0, kMaxUint64);
  const bool hard = fields.OptionalBool("hard").value_or(false);
  if (auto status = fields.Finish(); !status.ok()) return status;
  return Done(store.DeleteObject(dataset, id, hard));
}

JsonForm DeleteObjectForm() {
  return {.summary = "Hides an object from reads, or, with `hard`, removes it for good",
          .request = {RequiredField("dataset", "Text"), RequiredField("object_id", "Uint"),
                      OptionalField("hard", "Flag")}};
}

Answer ScanObjects(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const IdRange range = ReadIdRange(fields);
  ObjectScanOptions options{.max_bytes = kDefaultScanBytes};
  options.include_inactive = fields.OptionalBool("include_inactive").value_or(false);
  options.limit =
      static_cast<uint32_t>(fields.OptionalUint("limit", 1, kMaxListEntries).value_or(options.limit));
  options.marker = ReadMarker(fields);
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto page = store.ScanObjects(dataset, range, options);
  if (!page.ok()) return page.status();
  return ObjectsToJson(*page);
}

JsonForm ScanObjectsForm() {
  return {.summary =
              "Returns one page of objects by their IDs; as long as the marker is not null, more may follow",
          .get = "/v1/datasets/{dataset}/objects",
          .request = {RequiredField("dataset", "Text"), OptionalField("start_id", "Uint"),
                      OptionalField("end_id", "Uint"), OptionalField("include_inactive", "Flag"),
                      OptionalField("limit", "Uint"), OptionalField("marker", "Marker")},
          .answer = {RequiredField("objects", "Objects"), RequiredField("marker", "Marker")}};
}

// ---- mappings ----

Answer AddMapping(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const uint64_t from = fields.Uint("from", 0, kMaxId);
  const uint64_t to = fields.Uint("to", 0, kMaxId);
  const auto sequence = fields.OptionalUint("sequence", 0, kMaxTimestamp);
  if (auto status = fields.Finish(); !status.ok()) return status;
  return Done(store.AddMapping(dataset, from, to, sequence));
}

JsonForm AddMappingForm() {
  return {.summary = "Adds an entry to a mapping, or changes its sequence",
          .request = {RequiredField("dataset", "Text"), RequiredField("from", "Uint"),
                      RequiredField("to", "Uint"), OptionalField("sequence", "Uint")}};
}

Answer RemoveMapping(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const uint64_t from = fields.Uint("from", 0, kMaxId);
  const uint64_t to = fields.Uint("to", 0, kMaxId);
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto removed = store.RemoveMapping(dataset, from, to);
  if (!removed.ok()) return removed.status();
  return Json{{"removed", *removed}};
}

JsonForm RemoveMappingForm() {
  return {.summary = "Removes an entry of a mapping",
          .request = {RequiredField("dataset", "Text"), RequiredField("from", "Uint"),
                      RequiredField("to", "Uint")},
          .answer = {RequiredField("removed", "Flag")}};
}

Answer ListMapping(JsonFields& fields, KVStore& store) {
  const MappingListRequest request = ReadMappingList(fields);
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto page = store.ListMapping(request.dataset, request.from, request.options);
  if (!page.ok()) return page.status();
  return MappingToJson(*page);
}

JsonForm ListMappingForm() {
  return {.summary = "Returns one page of the entries of an ID, by their sequence",
          .get = "/v1/datasets/{dataset}/mappings/{from}",
          .request = MappingListFields(),
          .answer = {RequiredField("entries", "MappingEntries"), RequiredField("marker", "Marker")}};
}

Answer ListObjects(JsonFields& fields, KVStore& store) {
  MappingListRequest request = ReadMappingList(fields);
  request.options.max_bytes = kDefaultScanBytes;
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto page = store.ListObjects(request.dataset, request.from, request.options);
  if (!page.ok()) return page.status();
  Json objects = Json::array();
  for (const JoinedObject& joined : page->objects) {
    const Answer object = joined.object.ok() ? ObjectToJson(*joined.object) : Answer(joined.object.status());
    Json one = object.ok() ? WithOk(*object) : ErrorToJson(object.status());
    one["to"] = std::to_string(joined.entry.to);
    one["sequence"] = joined.entry.sequence;
    objects.push_back(std::move(one));
  }
  return Json{{"objects", std::move(objects)}, {"marker", MarkerToJson(page->marker)}};
}

JsonForm ListObjectsForm() {
  return {.summary = "Returns one page of the entries of an ID with the objects that they point to",
          .get = "/v1/datasets/{dataset}/mappings/{from}/objects",
          .request = MappingListFields(),
          .answer = {RequiredField("objects", "JoinedObjects"), RequiredField("marker", "Marker")}};
}

Answer CountMapping(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const uint64_t from = fields.Uint("from", 0, kMaxId);
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto count = store.CountMapping(dataset, from);
  if (!count.ok()) return count.status();
  return Json{{"count", *count}};
}

JsonForm CountMappingForm() {
  return {.summary = "Returns how many entries an ID has",
          .get = "/v1/datasets/{dataset}/mappings/{from}/count",
          .request = {RequiredField("dataset", "Text"), RequiredField("from", "Uint")},
          .answer = {RequiredField("count", "Uint")}};
}

Answer ScanMappings(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const IdRange range = ReadIdRange(fields);
  MappingScanOptions options;
  options.limit =
      static_cast<uint32_t>(fields.OptionalUint("limit", 1, kMaxListEntries).value_or(options.limit));
  options.marker = ReadMarker(fields);
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto page = store.ScanMappings(dataset, range, options);
  if (!page.ok()) return page.status();
  return MappingsToJson(*page);
}

JsonForm ScanMappingsForm() {
  return {
      .summary =
          "Returns one page of the entries of all IDs; as long as the marker is not null, more may follow",
      .get = "/v1/datasets/{dataset}/mappings",
      .request = {RequiredField("dataset", "Text"), OptionalField("start_id", "Uint"),
                  OptionalField("end_id", "Uint"), OptionalField("limit", "Uint"),
                  OptionalField("marker", "Marker")},
      .answer = {RequiredField("entries", "ScannedMappings"), RequiredField("marker", "Marker")}};
}

}  // namespace kvstore::json_api
