#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/number.h"

namespace kvstore::reports {

/// Arithmetic on metrics: "late / departures", "100 * (clicks + `odd-name`) / impressions". Names are
/// letters, digits, '_', '.' and ':', starting with a letter or '_'; any other name stands between backticks.
/// A number without a point or an exponent is an integer of 64 bits; -9223372036854775808 is one, too. A
/// value.
class Expression {
 public:
  /// INVALID_ARGUMENT says where the text is wrong. At most 1,000 bytes, parentheses nested at most 50 deep.
  static absl::StatusOr<Expression> Parse(std::string_view text);
  /// The expression that is one metric.
  static Expression Of(std::string metric);

  /// The metrics that it names, each once.
  const std::vector<std::string>& metrics() const { return metrics_; }

  /// The value with these values of metrics(), in their order; nullopt where one that is needed is missing,
  /// or where zero would divide. Sums, differences and products of integers are exact; FAILED_PRECONDITION if
  /// one passes 64 bits. A quotient is a real number.
  absl::StatusOr<std::optional<Number>> Evaluate(std::span<const std::optional<Number>> values) const;

 private:
  friend class ExpressionParser;
  enum class Code : uint8_t { kMetric, kConstant, kAdd, kSubtract, kMultiply, kDivide, kNegate };
  struct Instruction {
    Code code;
    size_t metric = 0;
    Number constant;
  };
  static absl::StatusOr<std::optional<Number>> Combine(Code code, const Number& a, const Number& b);

  std::vector<std::string> metrics_;
  std::vector<Instruction> program_;  // operands first
};

}  // namespace kvstore::reports
