#pragma once

#include <span>
#include <string_view>

#include "json/json.h"
#include "kvstore_api/changes.h"
#include "kvstore_api/types.h"

/// The JSON forms of answers, which are the same in `kv exec`, with --json and over HTTP.
namespace kvstore::json_api {

/// [{"column", "cells": [{"timestamp", "value"}]}]
Json ItemsToJson(std::span<const Item> items);
/// {"row", "items"}
Json ScannedRowToJson(const ScannedRow& row);
/// {"row", "items", "marker": string or null}
Json RowToJson(std::string_view key, const Row& row);
/// {"data", "timestamp"}; DATA_LOSS if the stored text is not JSON.
absl::StatusOr<Json> ObjectToJson(const Object& object);
/// {"objects": [{"object_id", "data", "timestamp"}], "marker"}; as ObjectToJson.
absl::StatusOr<Json> ObjectsToJson(const ObjectPage& page);
/// {"entries": [{"to", "sequence"}], "marker"}
Json MappingToJson(const MappingPage& page);
/// {"entries": [{"from", "to", "sequence"}], "marker"}
Json MappingsToJson(const ScannedMappingPage& page);
/// {"token", "at", ...}, with "row", "column" and "cells"; or "object_id", "data" and "timestamp"; or "from",
/// "to" and "sequence". As ObjectToJson.
absl::StatusOr<Json> ChangeToJson(const Change& change);
Json ConsumerToJson(const ChangeConsumer& consumer);
/// A string, or null for an empty marker.
Json MarkerToJson(std::string_view marker);
/// Returns `answer` with "ok": true.
Json WithOk(Json answer);
/// {"ok": false, "error": {"code", "message"}}, and "in_doubt": true in `error` for a write that may or may
/// not have happened.
Json ErrorToJson(const absl::Status& status);

}  // namespace kvstore::json_api
