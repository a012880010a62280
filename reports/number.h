#pragma once

#include <bit>
#include <compare>
#include <cstdint>

namespace kvstore::reports {

/// The value of a point: an integer, which stays exact, or a real number.
class Number {
 public:
  constexpr Number() = default;
  static constexpr Number Integer(int64_t value) { return Number(static_cast<uint64_t>(value), true); }
  static constexpr Number Real(double value) { return Number(std::bit_cast<uint64_t>(value), false); }

  constexpr bool is_integer() const { return is_integer_; }
  /// The integer; only if is_integer().
  constexpr int64_t integer() const { return static_cast<int64_t>(bits_); }
  /// The real number; only if not is_integer().
  constexpr double real() const { return std::bit_cast<double>(bits_); }
  /// Either of the two as a real number, rounded to the nearest.
  constexpr double AsReal() const { return is_integer_ ? static_cast<double>(integer()) : real(); }
  /// The 64 bits of either.
  constexpr uint64_t bits() const { return bits_; }

  /// The same kind and the same bits: the integer 1 is not the real number 1.0.
  friend constexpr bool operator==(const Number&, const Number&) = default;

 private:
  constexpr Number(uint64_t bits, bool is_integer) : bits_(bits), is_integer_(is_integer) {}

  uint64_t bits_ = 0;
  bool is_integer_ = true;
};

/// An integer or a real number, exactly: a long double holds each of them without rounding.
inline long double ExactValue(const Number& number) {
  return number.is_integer() ? static_cast<long double>(number.integer())
                             : static_cast<long double>(number.real());
}

/// Less() where one of the two is a real number.
bool LessAmongReals(const Number& a, const Number& b);

/// The order by value, exact also between an integer and a real number. Among equal ones the integer is less,
/// and minus zero is less than zero, so that the least and the greatest of some numbers do not depend on
/// where they stood.
inline bool Less(const Number& a, const Number& b) {
  if (a.is_integer() && b.is_integer()) return a.integer() < b.integer();
  return LessAmongReals(a, b);
}

}  // namespace kvstore::reports
