#include "reports/quantile_sketch.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/big_endian.h"
#include "reports/bits.h"
#include "reports/byte_reader.h"

namespace kvstore::reports {
namespace {

constexpr uint8_t kQuantilesVersion = 1;
constexpr double kAccuracy = 0.01;
constexpr double kGrowth = (1 + kAccuracy) / (1 - kAccuracy);
constexpr double kLeast = 1e-300;
/// Counts are told as integers of 64 bits.
constexpr uint64_t kMaxCount = (uint64_t{1} << 63) - 1;
/// The greatest double is in bucket 35,486.
constexpr int32_t kMaxIndex = 36'000;

int32_t IndexOf(double size) {
  static const double kScale = 1 / std::log(kGrowth);
  return static_cast<int32_t>(std::ceil(std::log(size) * kScale));
}

/// The place of a quantile among `count` numbers, from 0 on.
uint64_t RankOf(double quantile, uint64_t count) {
  const double rank = quantile * static_cast<double>(count - 1);
  // Floating point may leave a whole number a little too small: 0.7 * 90 is 62.99999999999999.
  const double above = std::ceil(rank);
  return static_cast<uint64_t>(above - rank <= above * 1e-12 ? above : rank);
}

/// The number that is at most 1 % away from all of a bucket.
double Middle(int32_t index) { return 2 * std::pow(kGrowth, index) / (kGrowth + 1); }

using Buckets = std::map<int32_t, uint64_t>;

void AppendBuckets(std::string& out, const Buckets& buckets) {
  AppendVarint(out, buckets.size());
  int32_t before = 0;
  for (auto at = buckets.begin(); at != buckets.end(); ++at) {
    const int32_t difference = at->first - before;
    AppendVarint(out, at == buckets.begin() ? ZigZag(difference) : static_cast<uint64_t>(difference));
    AppendVarint(out, at->second);
    before = at->first;
  }
}

/// Adds to `total`; makes `in` fail if there is anything wrong.
Buckets ReadBuckets(ByteReader& in, uint64_t& total) {
  Buckets buckets;
  int64_t index = 0;
  const uint64_t size = in.Varint();
  for (uint64_t i = 0; i < size && !in.failed(); ++i) {
    const uint64_t difference = in.Varint();
    const uint64_t count = in.Varint();
    const bool sane =
        difference <= 4 * kMaxIndex && (i == 0 || difference > 0) && count > 0 && count <= kMaxCount - total;
    if (!sane) {
      in.Fail();
      break;
    }
    index += i == 0 ? UnZigZag(difference) : static_cast<int64_t>(difference);
    if (index < -kMaxIndex || index > kMaxIndex) in.Fail();
    total += count;
    buckets.emplace_hint(buckets.end(), static_cast<int32_t>(index), count);
  }
  return buckets;
}

absl::Status DamagedQuantiles() {
  return absl::DataLossError("a stored sketch of a distribution does not decode");
}

}  // namespace

void QuantileSketch::Add(double value) {
  if (std::fabs(value) < kLeast) {
    ++zeros_;
  } else if (value > 0) {
    ++positive_[IndexOf(value)];
  } else {
    ++negative_[IndexOf(-value)];
  }
  // Minus zero and zero are one number, and have one form.
  if (value == 0) value = 0;
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = count_ == 0 ? value : std::max(max_, value);
  ++count_;
}

absl::Status QuantileSketch::Merge(const QuantileSketch& other) {
  if (other.count_ == 0) return absl::OkStatus();
  if (other.count_ > kMaxCount - count_) {
    return absl::FailedPreconditionError(
        "a distribution would count 2^63 numbers or more, which is beyond the limit");
  }
  for (const auto& [index, count] : other.positive_) positive_[index] += count;
  for (const auto& [index, count] : other.negative_) negative_[index] += count;
  zeros_ += other.zeros_;
  min_ = count_ == 0 ? other.min_ : std::min(min_, other.min_);
  max_ = count_ == 0 ? other.max_ : std::max(max_, other.max_);
  count_ += other.count_;
  return absl::OkStatus();
}

double QuantileSketch::Quantile(double quantile) const {
  const uint64_t rank = RankOf(quantile, count_);
  // Both ends are known exactly.
  if (rank == 0) return min_;
  if (rank >= count_ - 1) return max_;
  uint64_t seen = 0;
  const auto within = [&](double value) { return std::clamp(value, min_, max_); };
  for (auto at = negative_.rbegin(); at != negative_.rend(); ++at) {
    seen += at->second;
    if (rank < seen) return within(-Middle(at->first));
  }
  seen += zeros_;
  if (rank < seen) return within(0);
  for (const auto& [index, count] : positive_) {
    seen += count;
    if (rank < seen) return within(Middle(index));
  }
  return max_;
}

std::string QuantileSketch::Encode() const {
  std::string bytes;
  bytes.push_back(static_cast<char>(kQuantilesVersion));
  AppendVarint(bytes, zeros_);
  AppendBuckets(bytes, positive_);
  AppendBuckets(bytes, negative_);
  AppendBigEndian(bytes, std::bit_cast<uint64_t>(min_));
  AppendBigEndian(bytes, std::bit_cast<uint64_t>(max_));
  return bytes;
}

absl::StatusOr<QuantileSketch> QuantileSketch::Decode(std::string_view bytes) {
  ByteReader in(bytes);
  if (in.Byte() != kQuantilesVersion) return DamagedQuantiles();
  QuantileSketch sketch;
  sketch.zeros_ = in.Varint();
  if (sketch.zeros_ > kMaxCount) return DamagedQuantiles();
  sketch.count_ = sketch.zeros_;
  sketch.positive_ = ReadBuckets(in, sketch.count_);
  sketch.negative_ = ReadBuckets(in, sketch.count_);
  const std::string_view bounds = in.Bytes(16);
  if (in.failed() || !in.rest().empty()) return DamagedQuantiles();
  sketch.min_ = std::bit_cast<double>(ReadBigEndian<uint64_t>(bounds));
  sketch.max_ = std::bit_cast<double>(ReadBigEndian<uint64_t>(bounds.substr(8)));
  if (!std::isfinite(sketch.min_) || !std::isfinite(sketch.max_) || sketch.min_ > sketch.max_)
    return DamagedQuantiles();
  return sketch;
}

}  // namespace kvstore::reports
