#pragma once

#include <string_view>

namespace kvstore {

/// Returns the text without spaces, tabs and ends of lines around it.
///
/// Ours, since absl's takes an absl::string_view, which is another type in Debian's build of it.
inline std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace kvstore
