#pragma once

#include "absl/status/statusor.h"
#include "json/json.h"
#include "json/json_fields.h"
#include "kvstore_api/dataset.h"

/// The JSON form of a dataset's settings, as `list_datasets` shows it and the catalog stores it.
namespace kvstore {

/// Returns {"dataset", "shape", "backend", "type" (objects only), "max_versions", "ttl_ms", "durability",
/// "compression", "blob_threshold", "engine", "table" and "keep_changes_ms" (if they are set)}: all settings
/// but the incarnation.
Json DatasetToJson(const DatasetSpec& spec);

/// Reads the settings that may be given when a dataset is created; absent fields keep their defaults.
/// Mistakes are recorded in `fields`.
///
/// stored_fields  whether compression, blob_threshold and engine may be given too.
DatasetSpec DatasetFromFields(JsonFields& fields, bool stored_fields);

/// Reads those changeable settings that are present. Mistakes are recorded in `fields`.
DatasetChange DatasetChangeFromFields(JsonFields& fields);

}  // namespace kvstore
