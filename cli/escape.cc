#include "cli/escape.h"

#include <fmt/format.h>

#include <charconv>

#include "kvstore_api/bytes_json.h"

namespace kvstore::cli {

std::string Escape(std::string_view bytes) {
  const bool text = IsUtf8(bytes);
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      out += "\\\\";
    } else if (byte < 0x20 || byte == 0x7F || (!text && byte >= 0x80)) {
      out += fmt::format("\\x{:02X}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

absl::StatusOr<std::string> Unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == '\\') {
      out += '\\';
      ++i;
      continue;
    }
    unsigned byte = 0;
    const bool hex =
        i + 3 < text.size() && text[i + 1] == 'x' &&
        std::from_chars(text.data() + i + 2, text.data() + i + 4, byte, 16).ptr == text.data() + i + 4;
    if (!hex) {
      return absl::InvalidArgumentError(fmt::format(
          "'{}': a \\ at byte {} begins neither \\\\ nor \\xNN (two hexadecimal digits)", text, i));
    }
    out += static_cast<char>(byte);
    i += 3;
  }
  return out;
}

}  // namespace kvstore::cli
