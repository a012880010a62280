#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kvstore::reports {

/// Many numbers as counts in buckets whose bounds grow by 2 %, so that a quantile is within 1 % of the exact
/// one, as DDSketch does it (Masson, Rim and Lee, VLDB 2019). Merging adds the counts: it is commutative,
/// associative and deterministic. A value; externally synchronised.
class QuantileSketch {
 public:
  /// A finite number. Those closer to 0 than 1e-300 are counted as 0.
  void Add(double value);
  /// FAILED_PRECONDITION if the count would reach 2^63; then nothing is merged.
  absl::Status Merge(const QuantileSketch& other);

  uint64_t count() const { return count_; }
  /// Bytes outside of this object, roughly: a sketch may have some ten thousand buckets.
  size_t memory() const { return (positive_.size() + negative_.size()) * kBucketBytes; }
  /// The exact least and greatest number; only if there is one.
  double min() const { return min_; }
  double max() const { return max_; }
  /// The number at the rank `quantile` * (count - 1), rounded down, within 1 %, and exact at both ends; only
  /// if there is one.
  ///
  /// quantile  0..1.
  double Quantile(double quantile) const;

  /// Equal contents have equal bytes. Stored: golden tests pin it.
  ///
  ///   version u8 = 1 | zeros varint | positive buckets | negative buckets | min, max as the 8 bytes of a
  ///   double buckets: how many varint, then of each the difference of its index (the first as zigzag) and
  ///   its count
  std::string Encode() const;
  /// DATA_LOSS unless the bytes have the form that Encode gives.
  static absl::StatusOr<QuantileSketch> Decode(std::string_view bytes);

  friend bool operator==(const QuantileSketch&, const QuantileSketch&) = default;

 private:
  using Buckets = std::map<int32_t, uint64_t>;
  /// A node of the map, as it is allocated.
  static constexpr size_t kBucketBytes = 64;

  Buckets positive_;  // by the logarithm of the size
  Buckets negative_;
  uint64_t zeros_ = 0;
  uint64_t count_ = 0;
  double min_ = 0;
  double max_ = 0;
};

}  // namespace kvstore::reports
