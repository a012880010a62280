#include "bench/harness/distribution.h"

#include <algorithm>
#include <cmath>

namespace kvstore::bench {
namespace {

constexpr double kAlpha = 1 / (1 - Zipfian::kTheta);
/// The sum of the weights of the first two items.
const double kZeta2 = 1 + std::pow(0.5, Zipfian::kTheta);

}  // namespace

Zipfian::Zipfian(uint64_t n) { GrowTo(n); }

void Zipfian::GrowTo(uint64_t n) {
  for (; n_ < n; ++n_) zeta_ += 1 / std::pow(static_cast<double>(n_ + 1), kTheta);
  eta_ = (1 - std::pow(2 / static_cast<double>(n_), 1 - kTheta)) / (1 - kZeta2 / zeta_);
}

uint64_t Zipfian::Choose(double uniform) const {
  const double at = uniform * zeta_;
  if (at < 1) return 0;
  if (at < kZeta2) return 1;
  const double item = static_cast<double>(n_) * std::pow(eta_ * uniform - eta_ + 1, kAlpha);
  return std::min(static_cast<uint64_t>(item), n_ - 1);
}

uint64_t Scramble(uint64_t item) {
  uint64_t hash = 0xCBF29CE484222325;
  for (int byte = 0; byte < 8; ++byte) {
    hash ^= item & 0xFF;
    hash *= 0x100000001B3;
    item >>= 8;
  }
  return hash;
}

}  // namespace kvstore::bench
