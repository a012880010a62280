#include "backends/mysql/units/lanes.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <set>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::mysql {
namespace {

/// How many shards of a host are worked on at once, and how many of all hosts.
constexpr size_t kHostLanes = 8;
constexpr size_t kLanes = 64;

size_t CountHosts(const ShardMap& map) {
  std::set<Host> hosts;
  for (const ShardRange& range : map.ranges()) hosts.insert(range.master);
  return hosts.size();
}

}  // namespace

std::vector<uint32_t> ShardsOf(const ShardMap& map) {
  std::vector<uint32_t> shards;
  for (const ShardRange& range : map.ranges()) {
    for (uint32_t shard = range.first; shard <= range.last; ++shard) shards.push_back(shard);
  }
  return shards;
}

std::vector<uint32_t> InTurns(const ShardMap& map, const std::vector<uint32_t>& shards) {
  std::map<Host, std::deque<uint32_t>> by_host;
  for (const uint32_t shard : shards) {
    const ShardRange* const range = map.Find(shard);
    by_host[range == nullptr ? Host() : range->master].push_back(shard);
  }
  std::vector<uint32_t> ordered;
  while (ordered.size() < shards.size()) {
    for (auto& [host, left] : by_host) {
      if (left.empty()) continue;
      ordered.push_back(left.front());
      left.pop_front();
    }
  }
  return ordered;
}

absl::Status InLanes(const ShardMap& map, const std::vector<uint32_t>& shards,
                     const std::function<absl::Status(uint32_t)>& work) {
  const std::vector<uint32_t> ordered = InTurns(map, shards);
  std::atomic<size_t> next{0};
  Mutex mutex;  // guards first
  absl::Status first;
  const auto run = [&, limits = CallScope::Current()] {
    const CallScope scope(limits);
    for (size_t i = next++; i < ordered.size(); i = next++) {
      absl::Status status = work(ordered[i]);
      const MutexLock lock(mutex);
      if (first.ok()) first = std::move(status);
    }
  };
  const size_t most = std::min({ordered.size(), kHostLanes * CountHosts(map), kLanes});
  std::vector<std::thread> lanes;
  for (size_t i = 1; i < most; ++i) lanes.emplace_back(run);
  run();
  for (std::thread& lane : lanes) lane.join();
  return first;
}

absl::Status InLanes(const ShardMap& map, const std::map<uint32_t, std::vector<size_t>>& by_shard,
                     const std::function<absl::Status(uint32_t, std::span<const size_t>)>& work) {
  std::vector<uint32_t> shards;
  for (const auto& [shard, places] : by_shard) shards.push_back(shard);
  return InLanes(map, shards, [&](uint32_t shard) { return work(shard, by_shard.at(shard)); });
}

}  // namespace kvstore::mysql
