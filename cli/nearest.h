#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kvstore::cli {

/// How many letters one has to add, remove, change or swap with the next to make one word of the other.
size_t EditDistance(std::string_view a, std::string_view b);

/// Those of `names` that somebody who typed `word` may have meant, the likeliest first, at most three: names
/// that begin with it, and those that are it, or have it as a part between hyphens, but for some mistakes.
std::vector<std::string> Nearest(std::string_view word, const std::vector<std::string>& names);

}  // namespace kvstore::cli
