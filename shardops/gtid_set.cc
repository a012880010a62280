#include "shardops/gtid_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace kvstore::shardops {
namespace {

/// Parses "17" or "1-17". False if it is neither, as a tag is.
bool ParseInterval(std::string_view text, uint64_t& first, uint64_t& last) {
  const char* const end = text.data() + text.size();
  auto [next, error] = std::from_chars(text.data(), end, first);
  if (error != std::errc()) return false;
  last = first;
  if (next == end) return true;
  if (*next != '-') return false;
  const auto second = std::from_chars(next + 1, end, last);
  return second.ec == std::errc() && second.ptr == end && last >= first;
}

}  // namespace

GtidSet::GtidSet(std::string_view text) {
  for (const absl::string_view server : absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(server, ':');
    const std::string uuid(absl::StripAsciiWhitespace(parts[0]));
    std::string name = uuid;
    for (size_t i = 1; i < parts.size(); ++i) {
      const std::string part(absl::StripAsciiWhitespace(parts[i]));
      uint64_t first = 0;
      uint64_t last = 0;
      if (ParseInterval(part, first, last)) {
        AddInterval(of_[name], first, last);
      } else {
        name = fmt::format("{}:{}", uuid, part);
      }
    }
  }
}

void GtidSet::AddInterval(Intervals& to, uint64_t first, uint64_t last) {
  // All intervals that overlap the new one, or touch it, become one with it.
  auto at = to.upper_bound(first);
  if (at != to.begin() && std::prev(at)->second + 1 >= first) --at;
  while (at != to.end() && at->first <= last + 1) {
    first = std::min(first, at->first);
    last = std::max(last, at->second);
    at = to.erase(at);
  }
  to.emplace(first, last);
}

void GtidSet::Add(const GtidSet& other) {
  for (const auto& [name, intervals] : other.of_) {
    for (const auto& [first, last] : intervals) AddInterval(of_[name], first, last);
  }
}

void GtidSet::Remove(const GtidSet& other) {
  for (const auto& [name, theirs] : other.of_) {
    const auto found = of_.find(name);
    if (found == of_.end()) continue;
    Intervals& ours = found->second;
    for (const auto& [first, last] : theirs) {
      auto at = ours.upper_bound(first);
      if (at != ours.begin() && std::prev(at)->second >= first) --at;
      while (at != ours.end() && at->first <= last) {
        const auto [our_first, our_last] = *at;
        at = ours.erase(at);
        if (our_first < first) ours.emplace(our_first, first - 1);
        if (our_last > last) at = ours.emplace(last + 1, our_last).first;
      }
    }
    if (ours.empty()) of_.erase(found);
  }
}

uint64_t GtidSet::LowestMissing(const std::string& name, uint64_t from) const {
  const auto found = of_.find(name);
  if (found == of_.end()) return from;
  // Intervals do not touch, so the number after one is in no other.
  const auto after = found->second.upper_bound(from);
  if (after == found->second.begin()) return from;
  return std::max(from, std::prev(after)->second + 1);
}

GtidSet GtidSet::OfServer(const std::string& uuid, std::string_view but_tag) const {
  GtidSet part;
  for (const auto& [name, intervals] : of_) {
    if (!name.starts_with(uuid) || name == fmt::format("{}:{}", uuid, but_tag)) continue;
    part.of_.emplace(name, intervals);
  }
  return part;
}

uint64_t GtidSet::CountMissingIn(const GtidSet& other) const {
  uint64_t missing = 0;
  for (const auto& [name, intervals] : of_) {
    const auto theirs = other.of_.find(name);
    for (const auto& [first, last] : intervals) {
      missing += last - first + 1;
      if (theirs == other.of_.end()) continue;
      for (const auto& [their_first, their_last] : theirs->second) {
        const uint64_t common_first = std::max(first, their_first);
        const uint64_t common_last = std::min(last, their_last);
        if (common_first <= common_last) missing -= common_last - common_first + 1;
      }
    }
  }
  return missing;
}

std::string GtidSet::ToString() const {
  std::string text;
  for (const auto& [name, intervals] : of_) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", name);
    for (const auto& [first, last] : intervals) {
      text += first == last ? fmt::format(":{}", first) : fmt::format(":{}-{}", first, last);
    }
  }
  return text;
}

}  // namespace kvstore::shardops
