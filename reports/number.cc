#include "reports/number.h"

#include <cmath>

namespace kvstore::reports {

bool LessAmongReals(const Number& a, const Number& b) {
  if (ExactValue(a) != ExactValue(b)) return ExactValue(a) < ExactValue(b);
  if (a.is_integer() != b.is_integer()) return a.is_integer();
  return std::signbit(a.real()) && !std::signbit(b.real());
}

}  // namespace kvstore::reports
