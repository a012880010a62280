#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace kvstore::cached {

/// The part of a text from a server that a message can show.
inline std::string Shown(std::string_view text) {
  std::string shown(text.substr(0, 80));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return shown;
}

}  // namespace kvstore::cached
