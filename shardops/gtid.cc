#include "shardops/gtid.h"

#include <charconv>
#include <map>

#include "absl/strings/str_split.h"

namespace kvstore::shardops {
namespace {

uint64_t Number(absl::string_view text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// The last sequence of each domain.
std::map<uint64_t, uint64_t> Parse(std::string_view position) {
  std::map<uint64_t, uint64_t> last;
  for (const absl::string_view one :
       absl::StrSplit(absl::string_view(position.data(), position.size()), ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(one, '-');
    if (parts.size() == 3) last[Number(parts[0])] = Number(parts[2]);
  }
  return last;
}

}  // namespace

uint64_t Missing(std::string_view has, std::string_view lacks) {
  const auto there = Parse(lacks);
  uint64_t missing = 0;
  for (const auto& [domain, sequence] : Parse(has)) {
    const auto found = there.find(domain);
    const uint64_t reached = found == there.end() ? 0 : found->second;
    if (sequence > reached) missing += sequence - reached;
  }
  return missing;
}

}  // namespace kvstore::shardops
