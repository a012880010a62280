#include "backends/mysql/changes/position_order.h"

#include <vector>

namespace kvstore::mysql {

bool IsAtOrBefore(const LogPlace& one, const LogPlace& other) {
  if (!other.done.Has(one.done)) return false;
  if (!one.part) return true;
  if (other.done.Has(*one.part)) return true;
  return other.part == one.part && one.rows <= other.rows;
}

bool HasPassed(const ChangePosition& other, const ChangePosition& one) {
  std::vector<MappedPair> pairs;
  for (const ChangePosition::Pair& pair : one.pairs) {
    const auto master = Host::Parse(pair.master);
    const auto slave = Host::Parse(pair.slave);
    pairs.push_back({.master = master.ok() ? *master : Host(),
                     .slave = slave.ok() ? *slave : Host(),
                     .domain = pair.domain});
  }
  const auto matches = MatchPairs(other, pairs);
  bool before = false;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (!matches[i]) return false;
    const LogPlace& mine = one.pairs[i].place;
    const LogPlace& theirs = other.pairs[*matches[i]].place;
    if (!IsAtOrBefore(mine, theirs)) return false;
    before = before || !IsAtOrBefore(theirs, mine);
  }
  return before;
}

}  // namespace kvstore::mysql
