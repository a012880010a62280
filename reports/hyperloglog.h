#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kvstore::reports {

/// How many different members a set has, without the members: a HyperLogLog of 2^12 registers, with a
/// standard error of 1.6 %. Merging is commutative, associative and deterministic. A value; externally
/// synchronised.
class HyperLogLog {
 public:
  static constexpr int kIndexBits = 12;
  static constexpr size_t kRegisters = size_t{1} << kIndexBits;

  /// Any bytes. A member that is added again changes nothing.
  void Add(std::string_view member);
  /// The union of both sets.
  void Merge(const HyperLogLog& other);
  /// The estimate of Ertl, "New cardinality estimation algorithms for HyperLogLog sketches" (2017), which
  /// needs no tables and is good over the whole range.
  double Estimate() const;

  /// One set has one form, so that equal sets have equal bytes. Stored: golden tests pin it.
  ///
  ///   version u8 = 1 | form u8 | sparse: (index difference varint, rank u8)... or dense: 4096 ranks of 6
  ///   bits
  std::string Encode() const;
  /// DATA_LOSS unless Encode gave these bytes.
  static absl::StatusOr<HyperLogLog> Decode(std::string_view bytes);

  friend bool operator==(const HyperLogLog&, const HyperLogLog&) = default;

 private:
  static constexpr int kMaxRank = 64 - kIndexBits + 1;
  std::string EncodeDense() const;
  static absl::StatusOr<HyperLogLog> DecodeSparse(std::string_view bytes);
  static absl::StatusOr<HyperLogLog> DecodeDense(std::string_view bytes);

  std::array<uint8_t, kRegisters> ranks_{};
};

}  // namespace kvstore::reports
