#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace kvstore::rocks {

/// Keeps reads-then-writes of a row apart from other writes of it. Plain puts take a row's lock shared, since
/// the engine orders them; conditional puts, deletes and trims take it exclusively. A lock serves many rows,
/// so a thread holds one at a time, or several shared ones taken in ascending order. Thread-safe.
class RowLocks {
 public:
  static constexpr size_t kStripes = 1024;

  static size_t StripeOf(uint64_t row_hash) { return row_hash % kStripes; }

  std::shared_lock<std::shared_mutex> Share(uint64_t row_hash) {
    return std::shared_lock(stripes_[StripeOf(row_hash)]);
  }
  std::unique_lock<std::shared_mutex> Exclude(uint64_t row_hash) {
    return std::unique_lock(stripes_[StripeOf(row_hash)]);
  }
  std::shared_lock<std::shared_mutex> ShareStripe(size_t stripe) {
    return std::shared_lock(stripes_[stripe]);
  }
  /// All of them: nobody is between reading and writing.
  std::vector<std::unique_lock<std::shared_mutex>> ExcludeAll() {
    std::vector<std::unique_lock<std::shared_mutex>> locks;
    locks.reserve(kStripes);
    for (std::shared_mutex& stripe : stripes_) locks.emplace_back(stripe);
    return locks;
  }
  /// Waits for all who hold one now; others come and go meanwhile.
  void PassAll() {
    for (std::shared_mutex& stripe : stripes_) const std::unique_lock passed(stripe);
  }

 private:
  std::array<std::shared_mutex, kStripes> stripes_;
};

}  // namespace kvstore::rocks
