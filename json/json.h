#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "absl/status/statusor.h"

namespace kvstore {

using Json = nlohmann::json;

/// Parses one JSON text (UTF-8). INVALID_ARGUMENT says where it is malformed, or that it nests deeper than
/// kMaxJsonDepth, which is checked before any recursive code runs. Never throws.
absl::StatusOr<Json> ParseJson(std::string_view text);

/// Parses the document of an object. Errors as ParseJson, and INVALID_ARGUMENT unless it is a JSON object of
/// at most kMaxValueBytes.
absl::StatusOr<Json> ParseDocument(std::string_view text);

/// Whether the document of an object says `"active": false`, as one does that was deleted softly.
bool IsInactive(std::string_view document);

}  // namespace kvstore
