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

Answer DeleteObject(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const uint64_t id = fields.Uint("object_id", 0, kMaxUint64);
  const bool hard = fields.OptionalBool("hard").value_or(false);
  if (auto status = fields.Finish(); !status.ok()) return status;
  return Done(store.DeleteObject(dataset, id, hard));
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

// ---- mappings ----

Answer AddMapping(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const uint64_t from = fields.Uint("from", 0, kMaxId);
  const uint64_t to = fields.Uint("to", 0, kMaxId);
  const auto sequence = fields.OptionalUint("sequence", 0, kMaxTimestamp);
  if (auto status = fields.Finish(); !status.ok()) return status;
  return Done(store.AddMapping(dataset, from, to, sequence));
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

Answer ListMapping(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const uint64_t from = fields.Uint("from", 0, kMaxId);
  MappingListOptions options;
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
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto page = store.ListMapping(dataset, from, options);
  if (!page.ok()) return page.status();
  return MappingToJson(*page);
}

Answer CountMapping(JsonFields& fields, KVStore& store) {
  const std::string dataset = fields.String("dataset");
  const uint64_t from = fields.Uint("from", 0, kMaxId);
  if (auto status = fields.Finish(); !status.ok()) return status;
  const auto count = store.CountMapping(dataset, from);
  if (!count.ok()) return count.status();
  return Json{{"count", *count}};
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

}  // namespace kvstore::json_api
