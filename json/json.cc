#include "kvstore_api/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kvstore_api/json_text.h"
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

/// What the library says has what it has read last, which is somebody's data: errors are logged, and shown.
///
/// byte  of the first that does not belong there, from 1.
absl::Status NotJson(std::string_view text, size_t byte) {
  if (byte > text.size()) return absl::InvalidArgumentError("not JSON: it ends too early");
  const std::string_view before = text.substr(0, byte == 0 ? 0 : byte - 1);
  const size_t line_break = before.rfind('\n');
  const size_t column = before.size() - (line_break == std::string_view::npos ? 0 : line_break + 1) + 1;
  return absl::InvalidArgumentError(fmt::format("not JSON: a mistake at line {}, column {}",
                                                std::count(before.begin(), before.end(), '\n') + 1, column));
}

}  // namespace

absl::StatusOr<Json> ParseJson(std::string_view text) {
  if (const int depth = Depth(text); depth > kMaxJsonDepth) {
    return absl::InvalidArgumentError(
        fmt::format("JSON nests {} deep, the limit is {}", depth, kMaxJsonDepth));
  }
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    return NotJson(text, error.byte);
  } catch (const Json::exception&) {
    // A number too large for a double, of which it does not say where it is.
    return absl::InvalidArgumentError("not JSON: a number is out of range");
  }
}

std::string TextOf(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
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
