#include "json/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "json/wide_integers.h"
#include "kvstore_api/limits.h"

namespace kvstore {
namespace {

/// No shorter number is an integer beyond 64 bits, a minus sign counted.
constexpr size_t kLeastWideInteger = std::string_view("18446744073709551616").size();

/// The properties of a text that its characters show before it is parsed.
struct Outline {
  int depth = 0;             // how deep arrays and objects nest
  bool long_number = false;  // a number has kLeastWideInteger digits in a row, or more
};

/// Looks at the characters outside of strings, which is exact for well-formed text.
Outline OutlineOf(std::string_view text) {
  Outline outline;
  int depth = 0;
  size_t digits = 0;  // in a row
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
      outline.depth = std::max(outline.depth, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    } else if ((c >= '0' && c <= '9') || c == '-') {
      if (++digits >= kLeastWideInteger) outline.long_number = true;
      continue;
    }
    digits = 0;
  }
  return outline;
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

absl::Status CheckDepth(const Outline& outline, int max_depth) {
  if (outline.depth <= max_depth) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("JSON nests {} deep, the limit is {}", outline.depth, max_depth));
}

absl::StatusOr<Json> Parse(std::string_view text) {
  // The library takes a zero byte for the end of the text, and looks at nothing after it.
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos) return NotJson(text, zero + 1);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    return NotJson(text, error.byte);
  } catch (const Json::exception&) {
    // A number is too large for a double; the library does not say where.
    return absl::InvalidArgumentError("not JSON: a number is out of range");
  }
}

absl::StatusOr<Json> Document(std::string_view text, absl::StatusOr<Json> (*parse)(std::string_view, int)) {
  if (text.size() > kMaxValueBytes) {
    return absl::InvalidArgumentError(
        fmt::format("data: {} bytes of JSON, the limit is {}", text.size(), kMaxValueBytes));
  }
  auto json = parse(text, kMaxJsonDepth);
  if (!json.ok())
    return absl::InvalidArgumentError(fmt::format("data: {}", std::string(json.status().message())));
  if (!json->is_object()) {
    return absl::InvalidArgumentError(fmt::format("data: must be a JSON object, not {}", json->type_name()));
  }
  return json;
}

}  // namespace

absl::StatusOr<Json> ParseJson(std::string_view text, int max_depth) {
  const Outline outline = OutlineOf(text);
  if (auto status = CheckDepth(outline, max_depth); !status.ok()) return status;
  auto json = Parse(text);
  // Few texts have so long a number, and only these are parsed twice.
  if (!json.ok() || !outline.long_number) return json;
  const std::string place = FindWideInteger(text);
  if (place.empty()) return json;
  return absl::InvalidArgumentError(fmt::format(
      "{}: an integer beyond 64 bits; integers must be from {} to {}, or else be given as strings "
      "or with an exponent (1e20)",
      place, std::numeric_limits<int64_t>::min(), std::numeric_limits<uint64_t>::max()));
}

absl::StatusOr<Json> ParseStoredJson(std::string_view text, int max_depth) {
  if (auto status = CheckDepth(OutlineOf(text), max_depth); !status.ok()) return status;
  return Parse(text);
}

absl::StatusOr<Json> ParseDocument(std::string_view text) { return Document(text, &ParseJson); }

absl::Status CheckDocument(std::string_view text) { return Document(text, &ParseStoredJson).status(); }

bool IsInactive(std::string_view document) {
  // Most documents are searched once and not parsed: an inactive one has the literal `false`, which cannot be
  // spelled in another way, and the word, unless an escape spells that.
  if (document.find("false") == std::string_view::npos) return false;
  if (document.find("\"active\"") == std::string_view::npos && document.find("\\u") == std::string_view::npos)
    return false;
  const auto json = ParseStoredJson(document);
  return json.ok() && json->contains("active") && (*json)["active"] == false;
}

}  // namespace kvstore
