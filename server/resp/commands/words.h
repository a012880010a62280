#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace kvstore::server::resp {

constexpr char LowerCase(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Returns the text with its ASCII letters in lower case.
inline std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = LowerCase(c);
  return lower;
}

/// Whether a word of a command is this one, in whatever case.
///
/// word  in lower case.
inline bool Is(std::string_view given, std::string_view word) {
  return given.size() == word.size() && std::equal(given.begin(), given.end(), word.begin(),
                                                   [](char a, char b) { return LowerCase(a) == b; });
}

}  // namespace kvstore::server::resp
