#include "base/unescape.h"

#include <charconv>

namespace kvstore {

std::optional<size_t> AppendUnescaped(std::string_view text, std::string& out) {
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
    if (!hex) return i;
    out += static_cast<char>(byte);
    i += 3;
  }
  return std::nullopt;
}

}  // namespace kvstore
