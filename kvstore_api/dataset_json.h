#pragma once

#include "absl/status/statusor.h"
#include "kvstore_api/dataset.h"
#include "kvstore_api/json.h"
#include "kvstore_api/json_fields.h"

/// The JSON form of a dataset's settings: what `list_datasets` shows and what the catalog stores.
namespace kvstore {

/// {"dataset", "shape", "backend", "type" (objects only), "max_versions", "ttl_ms", "durability",
/// "compression", "blob_threshold", "engine" and "table" (if they are set)}: all but the incarnation.
Json DatasetToJson(const DatasetSpec& spec);

/// Reads the fields of a dataset that may be given at creation; those that are absent keep their defaults.
/// With `stored_fields` also compression and blob_threshold. Mistakes are left in `fields`.
DatasetSpec DatasetFromFields(JsonFields& fields, bool stored_fields);

/// Reads the changeable settings that are there. Mistakes are left in `fields`.
DatasetChange DatasetChangeFromFields(JsonFields& fields);

}  // namespace kvstore
