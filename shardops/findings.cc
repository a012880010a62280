#include "shardops/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kvstore::shardops {
namespace {

/// A line names so many ranges; where shards are scattered there are more.
constexpr size_t kShownRanges = 8;

/// Returns "3-40, 42" for shards in ascending order.
std::string RangesOf(const std::vector<uint32_t>& shards) {
  std::vector<std::string> ranges;
  size_t shown = 0;
  for (size_t i = 0; i < shards.size() && ranges.size() < kShownRanges;) {
    size_t end = i + 1;
    while (end < shards.size() && shards[end] == shards[end - 1] + 1) ++end;
    ranges.push_back(end == i + 1 ? fmt::format("{}", shards[i])
                                  : fmt::format("{}-{}", shards[i], shards[end - 1]));
    shown = i = end;
  }
  std::string text = fmt::format("{}", fmt::join(ranges, ", "));
  if (shown < shards.size()) text += fmt::format(" and {} more", shards.size() - shown);
  return text;
}

}  // namespace

void Findings::Add(std::string text) {
  problems_.push_back(text);
  groups_.push_back({.one = std::move(text)});
}

void Findings::Add(const Host& host, ShardSpace space, uint32_t shard, const std::string& one,
                   const std::string& many) {
  std::string sentence = fmt::format("{}: {}", host.ToString(), one);
  problems_.push_back(sentence);
  const auto [found, is_new] = found_.try_emplace({host, space, many}, groups_.size());
  if (is_new) groups_.push_back({.host = host, .space = space, .one = std::move(sentence), .many = many});
  groups_[found->second].shards.push_back(shard);
}

FleetCheck Findings::Take() {
  FleetCheck check{.problems = std::move(problems_)};
  for (Group& group : groups_) {
    if (group.shards.size() < 2) {
      check.lines.push_back(std::move(group.one));
      continue;
    }
    std::sort(group.shards.begin(), group.shards.end());
    check.lines.push_back(fmt::format("{}: shards {} {}: {}", group.host.ToString(),
                                      ShardSpaceName(group.space), RangesOf(group.shards), group.many));
  }
  return check;
}

}  // namespace kvstore::shardops
