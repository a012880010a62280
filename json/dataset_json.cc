#include "json/dataset_json.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "kvstore_api/limits.h"

namespace kvstore {
namespace {

/// Reads a field whose value is one of a few names; a mistake is recorded in `fields`.
template <typename E>
std::optional<E> ReadChoice(JsonFields& fields, std::string_view name,
                            std::optional<E> (*parse)(std::string_view), std::string_view allowed) {
  const auto text = fields.OptionalString(name);
  if (!text) return std::nullopt;
  const auto value = parse(*text);
  if (!value) fields.Fail(name, "must be " + std::string(allowed));
  return value;
}

}  // namespace

Json DatasetToJson(const DatasetSpec& spec) {
  Json json = {{"dataset", spec.name},
               {"shape", Name(spec.shape)},
               {"backend", spec.backend},
               {"max_versions", spec.max_versions},
               {"ttl_ms", spec.ttl_ms},
               {"durability", Name(spec.durability)},
               {"compression", Name(spec.compression)},
               {"blob_threshold", spec.blob_threshold}};
  if (spec.shape == Shape::kObjects) json["type"] = spec.type;
  if (!spec.engine.empty()) json["engine"] = spec.engine;
  if (!spec.table.empty()) json["table"] = spec.table;
  if (spec.keep_changes_ms != 0) json["keep_changes_ms"] = spec.keep_changes_ms;
  return json;
}

DatasetChange DatasetChangeFromFields(JsonFields& fields) {
  DatasetChange change;
  if (auto value = fields.OptionalUint("max_versions", 0, std::numeric_limits<uint32_t>::max())) {
    change.max_versions = static_cast<uint32_t>(*value);
  }
  change.ttl_ms = fields.OptionalUint("ttl_ms", 0, kMaxTimestamp);
  change.durability = ReadChoice(fields, "durability", &ParseDurability, "\"process\" or \"machine\"");
  change.keep_changes_ms = fields.OptionalUint("keep_changes_ms", 0, kMaxTimestamp);
  return change;
}

DatasetSpec DatasetFromFields(JsonFields& fields, bool stored_fields) {
  DatasetSpec spec;
  spec.name = fields.String("dataset");
  spec.shape =
      ReadChoice(fields, "shape", &ParseShape, "\"rows\", \"objects\" or \"mappings\"").value_or(spec.shape);
  spec.backend = fields.OptionalString("backend").value_or("");
  spec.type = static_cast<uint32_t>(fields.OptionalUint("type", 1, 1023).value_or(0));
  if (stored_fields) {
    spec.compression = ReadChoice(fields, "compression", &ParseCompression, "\"none\", \"lz4\" or \"zstd\"")
                           .value_or(spec.compression);
    spec.blob_threshold =
        fields.OptionalUint("blob_threshold", 0, std::numeric_limits<uint64_t>::max()).value_or(0);
    spec.engine = fields.OptionalString("engine").value_or("");
  }
  return Apply(spec, DatasetChangeFromFields(fields));
}

}  // namespace kvstore
