#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace kvstore::bench {

/// A histogram of latencies in nanoseconds, from 0 to about 18 minutes (longer ones count as that), accurate
/// to 1 % (128 steps for each power of two), in 30 KiB. After Gil Tene's HdrHistogram, for which Debian has
/// no C++ library. Externally synchronised: each thread has its own, and they are merged.
class Histogram {
 public:
  void Add(uint64_t nanoseconds);
  void Merge(const Histogram& other);

  uint64_t count() const { return count_; }
  uint64_t max() const { return max_; }
  double mean() const;
  /// Returns the value that this share of all values does not exceed: Quantile(0.99). 0 if there are no
  /// values.
  uint64_t Quantile(double share) const;

 private:
  static constexpr unsigned kStepBits = 7;
  static constexpr uint64_t kSteps = uint64_t{1} << kStepBits;
  static constexpr unsigned kPowers = 40 - kStepBits;

  static size_t IndexOf(uint64_t value);
  /// Returns the largest value of a step.
  static uint64_t ValueOf(size_t index);

  std::array<uint64_t, (kPowers + 1) * kSteps> counts_{};
  uint64_t count_ = 0;
  uint64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace kvstore::bench
