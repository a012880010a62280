#include <algorithm>

#include "backends/mysql/changes/changes.h"
#include "base/clock.h"

/// How far those are behind who follow a dataset: Changes::Measure.
namespace kvstore::mysql {
namespace {

/// Until when all was told of a pair; `unless` if that was never so.
uint64_t ToldUntil(const ChangePosition::Pair& pair, uint64_t unless) {
  const uint64_t told = std::max(pair.complete_ms, pair.place.at_ms);
  return told == 0 ? unless : told;
}

}  // namespace

Changes::OldestOfLog Changes::OldestKept(ShardSpace space, const PairNow& pair) {
  const Host& host = pair.pair.master;
  const auto file = OldestFile(space, host);
  if (!file.ok()) return {};
  {
    const MutexLock lock(mutex_);
    const auto known = oldest_.find(host);
    if (known != oldest_.end() && known->second.file == *file) return known->second;
  }
  uint64_t since = 0;
  const auto oldest = Oldest(space, pair, since);
  if (!oldest.ok()) return {};
  const MutexLock lock(mutex_);
  oldest_[host] = {.file = *file, .before = oldest->done, .since_ms = since};
  return oldest_[host];
}

std::vector<Changes::Lag> Changes::Measure(ShardSpace space, std::span<const ChangePosition> positions) {
  std::vector<Lag> lags(positions.size());
  if (positions.empty()) return lags;
  std::vector<PairNow> pairs = Ask(space, MasterAsks::Patience::kShort);
  std::vector<MappedPair> mapped;
  std::vector<OldestOfLog> oldest(pairs.size());
  for (const PairNow& pair : pairs) mapped.push_back(pair.pair);
  ForEach(space, pairs, [&](PairNow& pair, size_t i) {
    if (pair.answer.status.ok()) oldest[i] = OldestKept(space, pair);
  });
  const uint64_t now_here = WallClockMs();
  for (size_t at = 0; at < positions.size(); ++at) {
    const ChangePosition& position = positions[at];
    Lag& lag = lags[at];
    const auto behind_since = [&lag](uint64_t since_ms, uint64_t now_ms) {
      lag.ms = std::max(lag.ms, std::max(now_ms, since_ms + 1) - since_ms);
    };
    const auto matches = MatchPairs(position, mapped);
    std::vector<bool> known(position.pairs.size(), false);
    for (size_t i = 0; i < pairs.size(); ++i) {
      const MasterAnswer& answer = pairs[i].answer;
      const uint64_t now = answer.status.ok() ? answer.now_ms : now_here;
      if (!matches[i]) {
        behind_since(position.made_ms, now);  // the pair has got its first shards since
        continue;
      }
      known[*matches[i]] = true;
      const ChangePosition::Pair& pair = position.pairs[*matches[i]];
      if (answer.status.ok()) {
        lag.is_lost =
            lag.is_lost || !answer.end.Has(pair.place.done) || !pair.place.done.Has(oldest[i].before);
        if (!pair.place.part && pair.place.done == answer.end) continue;
      }
      behind_since(ToldUntil(pair, oldest[i].since_ms == 0 ? position.made_ms : oldest[i].since_ms), now);
    }
    for (size_t i = 0; i < known.size(); ++i) {
      if (!known[i]) behind_since(ToldUntil(position.pairs[i], position.made_ms), now_here);
    }
  }
  return lags;
}

}  // namespace kvstore::mysql
