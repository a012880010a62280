#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kvstore {

/// Returns how many letters must be added, removed, changed or swapped with the next one to turn one word
/// into the other.
size_t EditDistance(std::string_view a, std::string_view b);

/// Returns at most three of `names` that somebody who typed `word` may have meant, the likeliest first: names
/// that begin with it, and names that equal it, or have a part between hyphens or underscores that equals it,
/// except for a few mistakes. None for a word of more than 64 bytes, which nobody has mistyped and which
/// would take long to compare.
std::vector<std::string> Nearest(std::string_view word, const std::vector<std::string>& names);

/// Returns "; did you mean A, or B?", to be appended to a message; empty without names.
std::string DidYouMean(const std::vector<std::string>& meant);

}  // namespace kvstore
