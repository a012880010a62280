#include "shardops/gtid.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "shardops/gtid_set.h"

namespace kvstore::shardops {
namespace {

uint64_t Number(absl::string_view text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::vector<Gtid> Parse(std::string_view text) {
  std::vector<Gtid> all;
  for (const absl::string_view one : absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(one, '-');
    if (parts.size() == 3) all.push_back({Number(parts[0]), Number(parts[1]), Number(parts[2])});
  }
  return all;
}

std::string Format(const std::map<uint64_t, Gtid>& by_domain) {
  std::string position;
  for (const auto& [domain, gtid] : by_domain) {
    position += fmt::format("{}{}-{}-{}", position.empty() ? "" : ",", domain, gtid.server, gtid.sequence);
  }
  return position;
}

}  // namespace

GtidPosition::GtidPosition(std::string_view text) {
  for (const Gtid& gtid : Parse(text)) Add(gtid);
}

uint64_t GtidPosition::LastOf(uint64_t domain) const {
  const auto last = last_.find(domain);
  return last == last_.end() ? 0 : last->second.sequence;
}

std::string GtidPosition::ToString() const { return Format(last_); }

uint64_t CountMissing(std::string_view has, std::string_view lacks) {
  if (GtidSet::IsOne(has)) return GtidSet(has).CountMissingIn(GtidSet(lacks));
  std::map<uint64_t, uint64_t> reached;
  for (const Gtid& gtid : Parse(lacks)) reached[gtid.domain] = gtid.sequence;
  uint64_t missing = 0;
  for (const Gtid& gtid : Parse(has)) {
    const uint64_t last = reached[gtid.domain];
    if (gtid.sequence > last) missing += gtid.sequence - last;
  }
  return missing;
}

uint64_t CountMissingOfDomain(std::string_view has, std::string_view lacks, uint64_t domain) {
  if (GtidSet::IsOne(has)) return CountMissing(has, lacks);
  const uint64_t last = GtidPosition(lacks).LastOf(domain);
  return std::max(last, GtidPosition(has).LastOf(domain)) - last;
}

uint64_t CountBeyond(std::string_view has, std::string_view lacks, bool unknown) {
  if (GtidSet::IsOne(has)) return GtidSet(has).CountMissingIn(GtidSet(lacks));
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> last;
  for (const Gtid& gtid : Parse(lacks)) last[{gtid.domain, gtid.server}] = gtid.sequence;
  uint64_t beyond = 0;
  for (const Gtid& gtid : Parse(has)) {
    const auto found = last.find({gtid.domain, gtid.server});
    if (found == last.end()) {
      beyond += unknown ? 1 : 0;
    } else if (gtid.sequence > found->second) {
      beyond += gtid.sequence - found->second;
    }
  }
  return beyond;
}

std::string PositionOfOtherDomains(std::string_view position, std::string_view logged, uint64_t server) {
  std::map<uint64_t, Gtid> others;
  for (const Gtid& gtid : Parse(position)) {
    if (gtid.server != server) others[gtid.domain] = gtid;
  }
  for (const Gtid& gtid : Parse(logged)) others.erase(gtid.domain);
  return Format(others);
}

std::string UnionOfSets(std::string_view one, std::string_view other) {
  GtidSet both(one);
  both.Add(GtidSet(other));
  return both.ToString();
}

std::string LatestOfEachDomain(std::string_view one, std::string_view other) {
  std::map<uint64_t, Gtid> latest;
  for (const std::string_view position : {one, other}) {
    for (const Gtid& gtid : Parse(position)) {
      const auto [entry, added] = latest.try_emplace(gtid.domain, gtid);
      if (!added && entry->second.sequence < gtid.sequence) entry->second = gtid;
    }
  }
  return Format(latest);
}

}  // namespace kvstore::shardops
