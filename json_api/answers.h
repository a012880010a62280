#pragma once

#include <span>
#include <string_view>

#include "kvstore_api/json.h"
#include "kvstore_api/types.h"

/// The JSON forms of answers, the same in `kv exec` and under --json.
namespace kvstore::cli {

/// [{"column", "cells": [{"timestamp", "value"}]}]
Json ItemsToJson(std::span<const Item> items);
/// {"row", "items", "marker": string or null}
Json RowToJson(std::string_view key, const Row& row);
/// {"data", "timestamp"}; DATA_LOSS if the stored text is not JSON.
absl::StatusOr<Json> ObjectToJson(const Object& object);
/// {"entries": [{"to", "sequence"}], "marker"}
Json MappingToJson(const MappingPage& page);
/// The marker, or null for an empty one.
Json MarkerToJson(std::string_view marker);
/// {"ok": false, "error": {"code", "message"}}
Json ErrorToJson(const absl::Status& status);
/// One line of JSON, without its end, and with nothing that a terminal obeys. Bytes that are not UTF-8, which
/// only a message can have, are replaced.
std::string ToLine(const Json& json);

}  // namespace kvstore::cli
