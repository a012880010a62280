#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace kvstore::reports {

/// 128 bits hold the sum of 2^64 integers of 64 bits.
__extension__ typedef __int128 Int128;

/// A sum of real numbers without any rounding until it is asked for, so that it does not depend on the order
/// in which they came, nor on how parts of it were summed first: a fixed-point number that is as wide as
/// doubles reach (a "small superaccumulator", R. M. Neal, 2015). A value; externally synchronised.
class ExactSum {
 public:
  /// A finite number.
  void Add(double value);
  void Add(Int128 value);
  void Merge(const ExactSum& other);
  /// The sum, rounded once, to the nearest double; infinite beyond their range.
  double Round() const;

 private:
  // Digits of 32 bits, which are kept in 64 so that many numbers can be added before carries are passed on.
  static constexpr size_t kDigits = 70;
  static constexpr uint32_t kMaxPending = uint32_t{1} << 29;
  using Digits = std::array<int64_t, kDigits>;

  void AddMantissa(uint64_t mantissa, size_t position, bool negative);
  static void Normalize(Digits& digits);

  Digits digits_{};
  uint32_t pending_ = 0;
};

}  // namespace kvstore::reports
