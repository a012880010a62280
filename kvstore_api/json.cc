#include "kvstore_api/json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kvstore_api/limits.h"

namespace kvstore {
namespace {

/// How deep arrays and objects nest. Counts brackets outside of strings: exact for well-formed text.
int Depth(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

absl::StatusOr<Json> ParseJson(std::string_view text) {
  if (const int depth = Depth(text); depth > kMaxJsonDepth) {
    return absl::InvalidArgumentError(
        fmt::format("JSON nests {} deep, the limit is {}", depth, kMaxJsonDepth));
  }
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."; the bracket tells nobody
    // anything.
    std::string_view what = error.what();
    if (const size_t end = what.find("] "); end != std::string_view::npos) what.remove_prefix(end + 2);
    return absl::InvalidArgumentError(fmt::format("not JSON: {}", what));
  }
}

absl::StatusOr<Json> ParseDocument(std::string_view text) {
  if (text.size() > kMaxValueBytes) {
    return absl::InvalidArgumentError(
        fmt::format("data: {} bytes of JSON, the limit is {}", text.size(), kMaxValueBytes));
  }
  auto json = ParseJson(text);
  if (!json.ok())
    return absl::InvalidArgumentError(fmt::format("data: {}", std::string(json.status().message())));
  if (!json->is_object()) {
    return absl::InvalidArgumentError(fmt::format("data: must be a JSON object, not {}", json->type_name()));
  }
  return json;
}

bool IsInactive(std::string_view document) {
  // Cheap for nearly all documents, which do not have the word, nor an escape that may spell it.
  if (document.find("\"active\"") == std::string_view::npos && document.find("\\u") == std::string_view::npos)
    return false;
  const auto json = ParseJson(document);
  return json.ok() && json->contains("active") && (*json)["active"] == false;
}

}  // namespace kvstore
