#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvstore::cached {

/// Which of several servers has a key, by consistent hashing: each server has many points on a ring, and a
/// key belongs to the server of the first point after its own (the method of ketama, not its points). One
/// more server for n servers moves a share of 1 / (n + 1) of the keys.
class Ring {
 public:
  static constexpr size_t kPoints = 160;  ///< Points of each server; shares are even to about a tenth.

  explicit Ring(const std::vector<std::string>& servers);
  bool empty() const { return points_.empty(); }
  /// The place in the list of the server that has a key; the ring must not be empty.
  size_t Find(uint64_t hash) const;

 private:
  std::vector<std::pair<uint64_t, uint32_t>> points_;  // sorted
};

/// The place of a key of two numbers on the ring. The same in every build and process.
uint64_t RingHash(uint64_t first, uint64_t second);

}  // namespace kvstore::cached
