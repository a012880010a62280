#pragma once

#include <cstdint>
#include <random>

namespace kvstore::bench {

/// Chooses items 0..n-1, the first ones most often: item i in proportion to 1 / (i + 1)^0.99. Immutable,
/// except that n may grow. After Gray et al., "Quickly Generating Billion-Record Synthetic Databases" (SIGMOD
/// 1994), with the constant of YCSB.
class Zipfian {
 public:
  static constexpr double kTheta = 0.99;
  /// The constructor takes n steps: 10 ms for a million.
  explicit Zipfian(uint64_t n);
  /// Changes the number of items to n, which must not be less than before.
  void GrowTo(uint64_t n);
  uint64_t size() const { return n_; }
  /// uniform  within [0, 1).
  uint64_t Choose(double uniform) const;

 private:
  uint64_t n_ = 0;
  double zeta_ = 0;  // of n_
  double eta_ = 0;
};

/// Hashes items, so that those chosen often do not lie together: FNV-1a, as in YCSB.
uint64_t Scramble(uint64_t item);

/// Returns a number within [0, 1).
template <typename Random>
double Uniform(Random& random) {
  return static_cast<double>(random() >> 11) * 0x1.0p-53;
}

}  // namespace kvstore::bench
