#include "backends/cached/protocol/ring.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"

namespace kvstore::cached {

namespace {

/// Spreads the bits of a number (the finaliser of SplitMix64).
uint64_t Mix(uint64_t hash) {
  hash = (hash ^ hash >> 30) * 0xBF58476D1CE4E5B9;
  hash = (hash ^ hash >> 27) * 0x94D049BB133111EB;
  return hash ^ hash >> 31;
}

}  // namespace

uint64_t RingHash(uint64_t first, uint64_t second) { return Mix(Mix(first + 0x9E3779B97F4A7C15) ^ second); }

Ring::Ring(const std::vector<std::string>& servers) {
  points_.reserve(servers.size() * kPoints);
  for (uint32_t server = 0; server < servers.size(); ++server) {
    for (size_t i = 0; i < kPoints; ++i) {
      points_.emplace_back(Mix(Fnv1a(fmt::format("{}#{}", servers[server], i))), server);
    }
  }
  std::sort(points_.begin(), points_.end());
}

size_t Ring::Find(uint64_t hash) const {
  const auto point = std::lower_bound(points_.begin(), points_.end(), std::pair<uint64_t, uint32_t>(hash, 0));
  return point == points_.end() ? points_.front().second : point->second;
}

}  // namespace kvstore::cached
