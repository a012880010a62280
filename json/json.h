#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvstore_api/limits.h"

namespace kvstore {

using Json = nlohmann::json;

/// How deep a text may nest that has documents in it, such as a request, so that a document in it may have
/// all of kMaxJsonDepth: the text itself, a list of entries, an entry, and one level to spare.
inline constexpr int kMaxEnvelopeDepth = kMaxJsonDepth + 4;

/// Parses one JSON text (UTF-8). INVALID_ARGUMENT says where it is malformed, or that it nests deeper than
/// `max_depth`, which is checked before any recursive code runs. Also INVALID_ARGUMENT for an integer beyond
/// 64 bits, with the path of its field, because a `Json` would hold it as a real number, without its last
/// digits. Never throws.
absl::StatusOr<Json> ParseJson(std::string_view text, int max_depth = kMaxJsonDepth);

/// As ParseJson, but integers beyond 64 bits become the nearest real numbers. For the documents of objects,
/// which are stored as they were sent and may have such integers.
absl::StatusOr<Json> ParseStoredJson(std::string_view text, int max_depth = kMaxJsonDepth);

/// Parses a merge patch of a document. Errors as ParseJson, and INVALID_ARGUMENT unless it is a JSON object
/// of at most kMaxValueBytes.
absl::StatusOr<Json> ParseDocument(std::string_view text);

/// Checks a document that is to be stored as it was sent. Errors as ParseDocument, but integers may be of any
/// size.
absl::Status CheckDocument(std::string_view text);

/// Whether the document of an object says `"active": false`, as one does that was deleted softly.
bool IsInactive(std::string_view document);

}  // namespace kvstore
