#include "base/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_split.h"

namespace kvstore {
namespace {

constexpr size_t kMost = 3;
constexpr size_t kMaxWordBytes = 64;

/// Returns the fewest mistakes that turn the name, or one of its parts, into `word`.
size_t Mistakes(std::string_view word, const std::string& name) {
  if (name.starts_with(word)) return 0;
  size_t least = EditDistance(word, name);
  for (const auto part : absl::StrSplit(name, absl::ByAnyChar("-_"))) {
    least = std::min(least, EditDistance(word, std::string_view(part.data(), part.size())));
  }
  return least;
}

}  // namespace

size_t EditDistance(std::string_view a, std::string_view b) {
  // Rows of the table of distances between prefixes of a and b: the row before the last one, the last one,
  // this one.
  std::vector<size_t> before_last(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before_last, last);
    std::swap(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::vector<std::string> Nearest(std::string_view word, const std::vector<std::string>& names) {
  if (word.empty() || word.size() > kMaxWordBytes) return {};
  std::vector<std::pair<size_t, std::string>> ranked;
  // A word of four letters with two mistakes would resemble any other.
  const size_t allowed = word.size() < 3 ? 0 : word.size() < 6 ? 1 : word.size() / 3;
  for (const std::string& name : names) {
    if (const size_t mistakes = Mistakes(word, name); mistakes <= allowed)
      ranked.emplace_back(mistakes, name);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> nearest;
  for (auto& [mistakes, name] : ranked) {
    if (nearest.size() < kMost) nearest.push_back(std::move(name));
  }
  return nearest;
}

std::string DidYouMean(const std::vector<std::string>& meant) {
  return meant.empty() ? "" : fmt::format("; did you mean {}?", fmt::join(meant, ", or "));
}

}  // namespace kvstore
