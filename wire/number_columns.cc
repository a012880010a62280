#include "wire/number_columns.h"

#include <fmt/format.h>

#include <cmath>

namespace kvstore::wire {

using reports::Number;

void AddNumber(const Number& number, v1::Numbers& column) {
  const bool real = !number.is_integer();
  const int before = column.integers_size() + column.reals_size();
  const bool one_kind = column.is_real_size() == 0;
  // The first number of another kind than those before it: from here on the column says which is which.
  if (one_kind && before > 0 && real != (column.reals_size() > 0)) {
    column.mutable_is_real()->Resize(before, !real);
  }
  if (column.is_real_size() > 0) column.add_is_real(real);
  if (real) {
    column.add_reals(number.real());
  } else {
    column.add_integers(number.integer());
  }
}

absl::StatusOr<std::vector<Number>> NumbersOf(const v1::Numbers& column, size_t count,
                                              std::string_view field) {
  const auto wrong = [&](std::string_view what) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", field, what));
  };
  const size_t given = static_cast<size_t>(column.integers_size()) + static_cast<size_t>(column.reals_size());
  if (given != count) return wrong(fmt::format("{} numbers for {} points", given, count));
  const bool one_kind = column.is_real_size() == 0;
  if (one_kind && column.integers_size() > 0 && column.reals_size() > 0)
    return wrong("is_real is missing, and there are numbers of both kinds");
  if (!one_kind && static_cast<size_t>(column.is_real_size()) != count)
    return wrong(fmt::format("is_real has {} entries for {} points", column.is_real_size(), count));
  std::vector<Number> numbers;
  numbers.reserve(count);
  int next_integer = 0;
  int next_real = 0;
  for (size_t i = 0; i < count; ++i) {
    const bool real = one_kind ? column.reals_size() > 0 : column.is_real(static_cast<int>(i));
    if ((real ? next_real == column.reals_size() : next_integer == column.integers_size()))
      return wrong(fmt::format("is_real names more numbers of a kind than there are, at {}", i));
    if (!real) {
      numbers.push_back(Number::Integer(column.integers(next_integer++)));
      continue;
    }
    const double value = column.reals(next_real++);
    if (!std::isfinite(value)) return wrong(fmt::format("number {} is not finite", i));
    numbers.push_back(Number::Real(value));
  }
  return numbers;
}

}  // namespace kvstore::wire
