#include "reports/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>

#include "reports/status_macros.h"

namespace kvstore::reports {

/// Reads an expression from left to right; a method for each level of precedence.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : text_(text) {}

  absl::StatusOr<Expression> Parse() {
    KV_RETURN_IF_ERROR(Sum(0));
    Peek();
    if (at_ < text_.size()) return Wrong("an operator");
    return std::move(result_);
  }

 private:
  using Code = Expression::Code;
  static constexpr int kMaxDepth = 50;

  absl::Status Sum(int depth) {
    if (depth > kMaxDepth) return Wrong("fewer parentheses");
    KV_RETURN_IF_ERROR(Product(depth));
    while (Peek() == '+' || Peek() == '-') {
      const Code code = Peek() == '+' ? Code::kAdd : Code::kSubtract;
      ++at_;
      KV_RETURN_IF_ERROR(Product(depth));
      Emit({code});
    }
    return absl::OkStatus();
  }

  absl::Status Product(int depth) {
    KV_RETURN_IF_ERROR(Factor(depth));
    while (Peek() == '*' || Peek() == '/') {
      const Code code = Peek() == '*' ? Code::kMultiply : Code::kDivide;
      ++at_;
      KV_RETURN_IF_ERROR(Factor(depth));
      Emit({code});
    }
    return absl::OkStatus();
  }

  absl::Status Factor(int depth) {
    const char c = Peek();
    if (c == '-') {
      if (depth > kMaxDepth) return Wrong("fewer signs");
      ++at_;
      if (IsNumber(Peek())) return Constant(/*negative=*/true);
      KV_RETURN_IF_ERROR(Factor(depth + 1));
      Emit({Code::kNegate});
      return absl::OkStatus();
    }
    if (c == '(') {
      ++at_;
      KV_RETURN_IF_ERROR(Sum(depth + 1));
      if (Peek() != ')') return Wrong("')'");
      ++at_;
      return absl::OkStatus();
    }
    if (c == '`') return Quoted();
    if (IsNumber(c)) return Constant(/*negative=*/false);
    if (IsLetter(c)) return Name();
    return Wrong("a metric, a number or '('");
  }

  absl::Status Quoted() {
    const size_t end = text_.find('`', at_ + 1);
    if (end == std::string_view::npos || end == at_ + 1) return Wrong("a name between backticks");
    EmitMetric(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return absl::OkStatus();
  }

  absl::Status Name() {
    size_t end = at_;
    while (end < text_.size() &&
           (IsLetter(text_[end]) || IsDigit(text_[end]) || text_[end] == '.' || text_[end] == ':')) {
      ++end;
    }
    EmitMetric(text_.substr(at_, end - at_));
    at_ = end;
    return absl::OkStatus();
  }

  /// An integer is read together with its sign, because the least one has no positive counterpart.
  absl::Status Constant(bool negative) {
    const char* begin = text_.data() + at_;
    const char* end = text_.data() + text_.size();
    uint64_t size = 0;
    const auto [after, error] = std::from_chars(begin, end, size);
    if (after != begin && (after == end || (*after != '.' && *after != 'e' && *after != 'E'))) {
      constexpr auto kGreatest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
      // As a real number it would lose digits.
      if (error != std::errc() || size > kGreatest + (negative ? 1U : 0U)) {
        return Wrong("an integer of 64 bits, or a real number (1e20),");
      }
      Emit({Code::kConstant, 0, Number::Integer(static_cast<int64_t>(negative ? 0 - size : size))});
      at_ += static_cast<size_t>(after - begin);
      return absl::OkStatus();
    }
    double real = 0;
    const auto [after_real, real_error] = std::from_chars(begin, end, real);
    if (real_error != std::errc() || !std::isfinite(real)) return Wrong("a number");
    Emit({Code::kConstant, 0, Number::Real(real)});
    if (negative) Emit({Code::kNegate});
    at_ += static_cast<size_t>(after_real - begin);
    return absl::OkStatus();
  }

  void Emit(Expression::Instruction instruction) { result_.program_.push_back(instruction); }

  void EmitMetric(std::string_view name) {
    auto& metrics = result_.metrics_;
    const auto found = std::find(metrics.begin(), metrics.end(), name);
    const auto index = static_cast<size_t>(found - metrics.begin());
    if (found == metrics.end()) metrics.emplace_back(name);
    Emit({Code::kMetric, index});
  }

  /// The next character that is not a space; NUL at the end.
  char Peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  absl::Status Wrong(std::string_view expected) const {
    return absl::InvalidArgumentError(
        fmt::format("expression: {} is expected at character {}", expected, at_ + 1));
  }

  static bool IsNumber(char c) { return IsDigit(c) || c == '.'; }
  static bool IsDigit(char c) { return c >= '0' && c <= '9'; }
  static bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

  std::string_view text_;
  size_t at_ = 0;
  Expression result_;
};

absl::StatusOr<Expression> Expression::Parse(std::string_view text) {
  constexpr size_t kMaxBytes = 1'000;
  if (text.size() > kMaxBytes) {
    return absl::InvalidArgumentError(
        fmt::format("expression: {} bytes, the limit is {}", text.size(), kMaxBytes));
  }
  return ExpressionParser(text).Parse();
}

Expression Expression::Of(std::string metric) {
  Expression expression;
  expression.metrics_.push_back(std::move(metric));
  expression.program_.push_back({Code::kMetric, 0});
  return expression;
}

absl::StatusOr<std::optional<Number>> Expression::Evaluate(
    std::span<const std::optional<Number>> values) const {
  std::vector<std::optional<Number>> stack;
  for (const Instruction& instruction : program_) {
    if (instruction.code == Code::kMetric) {
      stack.push_back(values[instruction.metric]);
      continue;
    }
    if (instruction.code == Code::kConstant) {
      stack.emplace_back(instruction.constant);
      continue;
    }
    const std::optional<Number> right = stack.back();
    stack.pop_back();
    std::optional<Number> left = Number::Integer(0);
    if (instruction.code != Code::kNegate) {
      left = stack.back();
      stack.pop_back();
    }
    if (!left || !right) {
      stack.emplace_back(std::nullopt);
      continue;
    }
    KV_ASSIGN_OR_RETURN(const std::optional<Number> combined, Combine(instruction.code, *left, *right));
    stack.push_back(combined);
  }
  return stack.back();
}

absl::StatusOr<std::optional<Number>> Expression::Combine(Code code, const Number& a, const Number& b) {
  if (code == Code::kNegate) code = Code::kSubtract;
  if (code != Code::kDivide && a.is_integer() && b.is_integer()) {
    int64_t result = 0;
    const bool overflow = code == Code::kAdd ? __builtin_add_overflow(a.integer(), b.integer(), &result)
                          : code == Code::kSubtract
                              ? __builtin_sub_overflow(a.integer(), b.integer(), &result)
                              : __builtin_mul_overflow(a.integer(), b.integer(), &result);
    if (overflow)
      return absl::FailedPreconditionError("expression: a result passes the range of 64-bit integers");
    return Number::Integer(result);
  }
  const double x = a.AsReal();
  const double y = b.AsReal();
  if (code == Code::kDivide && y == 0) return std::nullopt;
  const double result = code == Code::kAdd        ? x + y
                        : code == Code::kSubtract ? x - y
                        : code == Code::kMultiply ? x * y
                                                  : x / y;
  if (!std::isfinite(result)) {
    return absl::FailedPreconditionError("expression: a result passes the range of real numbers");
  }
  return Number::Real(result);
}

}  // namespace kvstore::reports
