#include "reports/exact_sum.h"

#include <bit>
#include <cmath>

namespace kvstore::reports {
namespace {

/// The lowest bit of the lowest digit stands for 2^-1074, the least double above 0.
constexpr int kLowestExponent = -1074;
constexpr size_t kPositionOfOne = 1074;

}  // namespace

void ExactSum::AddMantissa(uint64_t mantissa, size_t position, bool negative) {
  if (++pending_ >= kMaxPending) {
    Normalize(digits_);
    pending_ = 1;
  }
  const size_t digit = position / 32;
  const auto shift = static_cast<int>(position % 32);
  // The mantissa, moved to its place, as three digits.
  const uint64_t low = (mantissa & 0xFFFFFFFF) << shift;
  const uint64_t high = ((mantissa >> 32) << shift) + (low >> 32);
  const int64_t sign = negative ? -1 : 1;
  digits_[digit] += sign * static_cast<int64_t>(low & 0xFFFFFFFF);
  digits_[digit + 1] += sign * static_cast<int64_t>(high & 0xFFFFFFFF);
  digits_[digit + 2] += sign * static_cast<int64_t>(high >> 32);
}

void ExactSum::Add(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const auto exponent = static_cast<size_t>((bits >> 52) & 0x7FF);
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  const bool negative = (bits >> 63) != 0;
  // Subnormal numbers have the exponent of the least normal ones, without the leading one.
  if (exponent == 0) {
    AddMantissa(fraction, 0, negative);
  } else {
    AddMantissa(fraction | uint64_t{1} << 52, exponent - 1, negative);
  }
}

void ExactSum::Add(Int128 value) {
  const bool negative = value < 0;
  // Its parts are taken one by one, so that the least Int128 need not be negated as a whole.
  for (size_t part = 0; part < 4; ++part) {
    const auto digit = static_cast<int64_t>(value % (Int128{1} << 32));
    value /= Int128{1} << 32;
    AddMantissa(static_cast<uint64_t>(negative ? -digit : digit), kPositionOfOne + 32 * part, negative);
  }
}

void ExactSum::Merge(const ExactSum& other) {
  Digits right = other.digits_;
  Normalize(right);
  Normalize(digits_);
  for (size_t i = 0; i < kDigits; ++i) digits_[i] += right[i];
  pending_ = 2;
}

/// Afterwards all digits are 0..2^32-1 but the highest, which has the sign.
void ExactSum::Normalize(Digits& digits) {
  int64_t carry = 0;
  for (size_t i = 0; i + 1 < kDigits; ++i) {
    const int64_t value = digits[i] + carry;
    digits[i] = value & 0xFFFFFFFF;
    carry = value >> 32;
  }
  digits[kDigits - 1] += carry;
}

double ExactSum::Round() const {
  Digits digits = digits_;
  Normalize(digits);
  const bool negative = digits[kDigits - 1] < 0;
  if (negative) {
    for (int64_t& digit : digits) digit = -digit;
    Normalize(digits);
  }
  size_t top = kDigits;
  while (top > 0 && digits[top - 1] == 0) --top;
  if (top == 0) return 0;
  const auto bit = [&](size_t at) { return (static_cast<uint64_t>(digits[at / 32]) >> (at % 32)) & 1; };
  const size_t length =
      (top - 1) * 32 + static_cast<size_t>(std::bit_width(static_cast<uint64_t>(digits[top - 1])));
  const size_t shift = length > 53 ? length - 53 : 0;
  uint64_t mantissa = 0;
  for (size_t at = length; at > shift; --at) mantissa = mantissa << 1 | bit(at - 1);
  if (shift > 0 && bit(shift - 1) == 1) {
    bool above_half = (mantissa & 1) == 1;  // half way: to the even one
    for (size_t at = 0; at + 1 < shift && !above_half; ++at) above_half = bit(at) == 1;
    if (above_half) ++mantissa;
  }
  const double size = std::ldexp(static_cast<double>(mantissa), static_cast<int>(shift) + kLowestExponent);
  return negative ? -size : size;
}

}  // namespace kvstore::reports
