#include "backends/mysql/fleet/spread.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "shardmap/weights.h"

namespace kvstore::mysql {

Spread::Spread(const ShardMap& map, std::span<const ShardWeight> weights) {
  for (const ShardRange& range : map.ranges()) {
    for (uint32_t shard = range.first; shard <= range.last; ++shard) {
      // The first weight that names the shard counts.
      const auto found = std::find_if(weights.begin(), weights.end(), [shard](const ShardWeight& weight) {
        return weight.first <= shard && shard <= weight.last;
      });
      const uint32_t weight = found == weights.end() ? 1 : found->weight;
      Add(shard, weight);
    }
  }
}

Spread::Spread(std::span<const ShardWeight> shards) {
  for (const ShardWeight& one : shards) {
    for (uint32_t shard = one.first; shard <= one.last; ++shard) Add(shard, one.weight);
  }
}

void Spread::Add(uint32_t shard, uint32_t weight) {
  if (weight == 0) return;
  total_ += weight;
  if (!segments_.empty() && segments_.back().last + 1 == shard && segments_.back().weight == weight) {
    segments_.back().last = shard;
    segments_.back().end = total_;
  } else {
    segments_.push_back({total_, shard, weight});
  }
}

ShardWeights Spread::Shards() const {
  ShardWeights shards;
  uint64_t begin = 0;
  for (const Segment& segment : segments_) {
    const auto count = static_cast<uint32_t>((segment.end - begin) / segment.weight);
    shards.push_back({segment.last + 1 - count, segment.last, segment.weight});
    begin = segment.end;
  }
  return shards;
}

uint32_t Spread::Choose(uint64_t random) const {
  const uint64_t at = random % total_;
  const auto segment = std::upper_bound(segments_.begin(), segments_.end(), at,
                                        [](uint64_t wanted, const Segment& one) { return wanted < one.end; });
  return segment->last - static_cast<uint32_t>((segment->end - 1 - at) / segment->weight);
}

// ---- earlier spreads ----

Spreads::Spreads(std::filesystem::path file, ShardWeights weights)
    : file_(std::move(file)), weights_(std::move(weights)) {
  if (!file_.empty()) Load();
}

void Spreads::SetMap(const ShardMap& map) {
  const MutexLock lock(mutex_);
  map_ = map;
  UpdateCurrent();
}

void Spreads::SetWeights(const ShardWeights& weights) {
  const MutexLock lock(mutex_);
  weights_ = weights;
  UpdateCurrent();
}

std::shared_ptr<const Spread> Spreads::current() const {
  const MutexLock lock(mutex_);
  return current_;
}

std::vector<uint32_t> Spreads::EarlierShards(uint64_t number) const {
  std::vector<uint32_t> shards;
  const MutexLock lock(mutex_);
  if (before_.empty() || !current_ || current_->empty()) return shards;
  const uint32_t now = current_->Choose(number);
  const uint64_t now_ms = WallClockMs();
  for (const Before& before : before_) {
    if (before.until_ms < now_ms) continue;
    const uint32_t shard = before.spread.Choose(number);
    if (shard != now && std::find(shards.begin(), shards.end(), shard) == shards.end())
      shards.push_back(shard);
  }
  return shards;
}

void Spreads::UpdateCurrent() {
  if (!map_) return;
  Spread next(*map_, weights_);
  if (current_ && *current_ == next) return;
  const uint64_t now_ms = WallClockMs();
  // A spread that comes into force again needs no entry among the earlier ones.
  std::erase_if(before_,
                [&](const Before& before) { return before.until_ms < now_ms || before.spread == next; });
  if (current_ && !current_->empty()) {
    before_.insert(before_.begin(), {.until_ms = now_ms + kKeptMs, .spread = *current_});
  }
  if (before_.size() > kKept) before_.erase(before_.begin() + kKept, before_.end());
  current_ = std::make_shared<const Spread>(std::move(next));
  if (!file_.empty()) Save();
}

// The file has a line for each spread: until when it counts, and its shards as JSON. The spread in force has
// 0 in place of a time: its day begins when the file is loaded.

void Spreads::Save() const {
  std::string text = fmt::format("{} {}\n", 0, ToJson(current_->Shards()));
  for (const Before& before : before_) {
    text += fmt::format("{} {}\n", before.until_ms, ToJson(before.spread.Shards()));
  }
  if (auto status = ReplaceFile(file_, text); !status.ok()) {
    spdlog::warn("where new objects went before cannot be kept for the next start: {}",
                 std::string(status.message()));
  }
}

void Spreads::Load() {
  const auto text = ReadFile(file_);
  if (!text.ok()) return;
  for (std::string_view rest(*text); !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    uint64_t until_ms = 0;
    const auto [json, error] = std::from_chars(line.data(), line.data() + line.size(), until_ms);
    const auto shards =
        ParseWeights(std::string_view(json, static_cast<size_t>(line.data() + line.size() - json)));
    if (error != std::errc() || !shards.ok()) {
      spdlog::warn("{}: does not decode, and is passed over", file_.string());
      return;
    }
    Spread spread(*shards);
    if (spread.empty()) continue;
    before_.push_back(
        {.until_ms = until_ms == 0 ? WallClockMs() + kKeptMs : until_ms, .spread = std::move(spread)});
  }
}

}  // namespace kvstore::mysql
