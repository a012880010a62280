#include "bench/harness/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kvstore::bench {

size_t Histogram::IndexOf(uint64_t value) {
  // Values below two powers of steps are their own index; above, the upper bits choose.
  if (value < kSteps) return value;
  const auto power = static_cast<unsigned>(std::bit_width(value)) - kStepBits - 1;
  if (power >= kPowers) return (kPowers + 1) * kSteps - 1;
  return (power + 1) * kSteps + ((value >> power) - kSteps);
}

uint64_t Histogram::ValueOf(size_t index) {
  if (index < kSteps) return index;
  const size_t power = index / kSteps - 1;
  const uint64_t step = index % kSteps + kSteps;
  return ((step + 1) << power) - 1;
}

void Histogram::Add(uint64_t nanoseconds) {
  ++counts_.at(IndexOf(nanoseconds));
  ++count_;
  max_ = std::max(max_, nanoseconds);
  sum_ += static_cast<double>(nanoseconds);
}

void Histogram::Merge(const Histogram& other) {
  for (size_t i = 0; i < counts_.size(); ++i) counts_.at(i) += other.counts_.at(i);
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

double Histogram::mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

uint64_t Histogram::Quantile(double share) const {
  const auto wanted = static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_.at(i);
    if (seen >= wanted && seen > 0) return std::min(ValueOf(i), max_);
  }
  return max_;
}

}  // namespace kvstore::bench
