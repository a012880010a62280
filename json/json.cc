#include "json/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kvstore_api/limits.h"

namespace kvstore {
namespace {

/// Returns how deep arrays and objects nest. Counts brackets outside of strings, which is exact for
/// well-formed text.
int NestingDepth(std::string_view text) {
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

/// Makes the error for a text that is not JSON. It does not quote the library's message, which contains the
/// text read last: that is somebody's data, and errors are logged and shown.
///
/// byte  the position of the first byte that is wrong, from 1.
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
  if (const int depth = NestingDepth(text); depth > kMaxJsonDepth) {
    return absl::InvalidArgumentError(
        fmt::format("JSON nests {} deep, the limit is {}", depth, kMaxJsonDepth));
  }
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    return NotJson(text, error.byte);
  } catch (const Json::exception&) {
    // A number is too large for a double; the library does not say where.
    return absl::InvalidArgumentError("not JSON: a number is out of range");
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
  // Most documents are searched once and not parsed: an inactive one has the literal `false`, which cannot be
  // spelled in another way, and the word, unless an escape spells that.
  if (document.find("false") == std::string_view::npos) return false;
  if (document.find("\"active\"") == std::string_view::npos && document.find("\\u") == std::string_view::npos)
    return false;
  const auto json = ParseJson(document);
  return json.ok() && json->contains("active") && (*json)["active"] == false;
}

}  // namespace kvstore
