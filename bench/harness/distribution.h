#pragma once

#include <cstdint>
#include <random>

namespace kvstore::bench {

/// Items 0..n-1, the first ones more often than the rest: item i in proportion to 1 / (i + 1)^0.99.
/// Immutable, but that more items may come. After Gray et al., "Quickly Generating Billion-Record Synthetic
/// Databases" (SIGMOD 1994), with the constant of YCSB.
class Zipfian {
 public:
  static constexpr double kTheta = 0.99;
  /// Takes n steps once: 10 ms for a million.
  explicit Zipfian(uint64_t n);
  /// As if there were n items; no less than before.
  void GrowTo(uint64_t n);
  uint64_t size() const { return n_; }
  /// uniform  within [0, 1).
  uint64_t Choose(double uniform) const;

 private:
  uint64_t n_ = 0;
  double zeta_ = 0;  // of n_
  double eta_ = 0;
};

/// Spreads items over 0..n-1, so that those that are chosen often do not lie together: FNV-1a, as YCSB does.
uint64_t Scramble(uint64_t item);

/// A number within [0, 1).
template <typename Random>
double Uniform(Random& random) {
  return static_cast<double>(random() >> 11) * 0x1.0p-53;
}

}  // namespace kvstore::bench
