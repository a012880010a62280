#include "cli/escape.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/unescape.h"
#include "json/bytes_json.h"
#include "json/json_text.h"

namespace kvstore::cli {

namespace {

/// Returns the first character of UTF-8 text, and its size in `bytes`, if it has more than one byte and a
/// terminal would act on it; else 0.
uint32_t Obeyed(std::string_view text, size_t& bytes) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  uint32_t code = 0;
  if (text.size() >= 2 && (byte(0) == 0xC2 || byte(0) == 0xD8)) {
    bytes = 2;
    code = (byte(0) & 0x1Fu) << 6 | (byte(1) & 0x3Fu);
  } else if (text.size() >= 3 && byte(0) == 0xE2) {
    bytes = 3;
    code = (byte(0) & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
  }
  const auto among = [&](uint32_t first, uint32_t last) { return first <= code && code <= last; };
  const bool obeyed = among(0x80, 0x9F) || code == 0x61C || among(0x200E, 0x200F) || among(0x2028, 0x202E) ||
                      among(0x2066, 0x2069);
  return obeyed ? code : 0;
}

void AppendHex(std::string& out, std::string_view bytes) {
  for (const char c : bytes) out += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
}

/// Replaces everything that must not reach a terminal by \xNN; `plain` appends each of the other bytes.
template <typename Plain>
std::string Mark(std::string_view text, Lines lines, const Plain& plain) {
  const bool utf8 = IsUtf8(text);
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    size_t bytes = 1;
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool kept = lines == Lines::kMany && (byte == '\n' || byte == '\t');
    if (((byte < 0x20 && !kept) || byte == 0x7F || (byte >= 0x80 && !utf8)) ||
        (byte >= 0x80 && Obeyed(text.substr(i), bytes) != 0)) {
      AppendHex(out, text.substr(i, bytes));
    } else {
      bytes = 1;
      plain(out, text[i]);
    }
    i += bytes;
  }
  return out;
}

}  // namespace

std::string Escape(std::string_view bytes) {
  return Mark(bytes, Lines::kOne, [](std::string& out, char c) {
    if (c == '\\') out += c;
    out += c;
  });
}

std::string Printable(std::string_view text, Lines lines) {
  return Mark(text, lines, [](std::string& out, char c) { out += c; });
}

std::string PrintableJson(std::string json) {
  const auto suspect = [](char c) { return c == '\x7F' || c == '\xC2' || c == '\xD8' || c == '\xE2'; };
  if (std::none_of(json.begin(), json.end(), suspect)) return json;
  std::string out;
  for (size_t i = 0; i < json.size();) {
    size_t bytes = 1;
    const uint32_t code = json[i] == '\x7F' ? 0x7F : Obeyed(std::string_view(json).substr(i), bytes);
    if (code != 0) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      bytes = 1;
      out += json[i];
    }
    i += bytes;
  }
  return out;
}

absl::StatusOr<std::string> Unescape(std::string_view text) {
  std::string out;
  if (const auto mistake = AppendUnescaped(text, out)) {
    return absl::InvalidArgumentError(fmt::format(
        "'{}': a \\ at byte {} begins neither \\\\ nor \\xNN (two hexadecimal digits)", text, *mistake));
  }
  return out;
}

std::string ToLine(const Json& json) { return PrintableJson(TextOf(json)); }

}  // namespace kvstore::cli
