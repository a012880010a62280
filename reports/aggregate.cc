#include "reports/aggregate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

using Kind = Function::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 7> kFunctions = {{{"sum", Kind::kSum},
                                                                          {"count", Kind::kCount},
                                                                          {"avg", Kind::kAvg},
                                                                          {"min", Kind::kMin},
                                                                          {"max", Kind::kMax},
                                                                          {"last", Kind::kLast},
                                                                          {"distinct", Kind::kDistinct}}};

}  // namespace

absl::StatusOr<Function> ParseFunction(std::string_view field, std::string_view name) {
  for (const auto& [known, kind] : kFunctions) {
    if (known == name) return Function{.kind = kind};
  }
  double percentile = 0;
  if (name.size() > 1 && name.size() <= 8 && name.front() == 'p') {
    const auto [end, error] =
        std::from_chars(name.data() + 1, name.data() + name.size(), percentile, std::chars_format::fixed);
    const bool whole = error == std::errc() && end == name.data() + name.size();
    if (whole && percentile >= 0 && percentile <= 100) return Function{Kind::kPercentile, percentile};
  }
  return absl::InvalidArgumentError(fmt::format(
      "{}: there is no function '{}'; there are sum, count, avg, min, max, last, distinct, and p0 to p100",
      field, name));
}

absl::Status CheckFunction(const Function& function, const Metric& metric) {
  bool works = false;
  switch (metric.kind) {
    case MetricKind::kValue:
      works = function.kind != Kind::kDistinct;
      break;
    case MetricKind::kDistinct:
      works = function.kind == Kind::kDistinct;
      break;
    case MetricKind::kDistribution:
      works = function.kind == Kind::kPercentile || function.kind == Kind::kCount ||
              function.kind == Kind::kMin || function.kind == Kind::kMax;
      break;
  }
  if (works) return absl::OkStatus();
  constexpr std::string_view kAllowed[] = {"all but distinct", "distinct alone",
                                           "count, min, max and percentiles"};
  return absl::InvalidArgumentError(fmt::format("function: metric '{}' is of kind {}, which has {}",
                                                metric.name, Name(metric.kind),
                                                kAllowed[static_cast<size_t>(metric.kind) - 1]));
}

void Aggregate::Add(int64_t time, const Number& value, bool keep_values) {
  if (value.is_integer()) {
    integers_ += value.integer();
  } else {
    if (reals_ == nullptr) reals_ = std::make_unique<ExactSum>();
    reals_->Add(value.real());
  }
  if (count_ == 0 || Less(value, min_)) min_ = value;
  if (count_ == 0 || Less(max_, value)) max_ = value;
  if (count_ == 0 || time > last_time_ || (time == last_time_ && Less(last_, value))) {
    last_ = value;
    last_time_ = time;
  }
  ++count_;
  if (!keep_values) return;
  if (values_ == nullptr) values_ = std::make_unique<std::vector<Number>>();
  values_->push_back(value);
}

void Aggregate::AddSum(uint64_t count, Int128 sum) {
  integers_ += sum;
  count_ += count;
}

void Aggregate::AddIntegers(std::span<const int64_t> values, int64_t last_time) {
  Int128 sum = 0;
  int64_t least = values.front();
  int64_t greatest = values.front();
  for (const int64_t value : values) {
    sum += value;
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  TakeBounds(Number::Integer(least), Number::Integer(greatest), Number::Integer(values.back()), last_time);
  AddSum(values.size(), sum);
}

absl::Status Aggregate::AddSketch(MetricKind kind, const std::string& sketch) {
  if (kind == MetricKind::kDistinct) {
    KV_ASSIGN_OR_RETURN(const HyperLogLog decoded, HyperLogLog::Decode(sketch));
    if (distinct_ == nullptr) distinct_ = std::make_unique<HyperLogLog>();
    distinct_->Merge(decoded);
    ++count_;
    return absl::OkStatus();
  }
  KV_ASSIGN_OR_RETURN(const QuantileSketch decoded, QuantileSketch::Decode(sketch));
  if (distribution_ == nullptr) distribution_ = std::make_unique<QuantileSketch>();
  return distribution_->Merge(decoded);
}

absl::Status Aggregate::Merge(Aggregate&& other) {
  if (other.distinct_ != nullptr) {
    count_ += other.count_;
    if (distinct_ == nullptr) {
      distinct_ = std::move(other.distinct_);
    } else {
      distinct_->Merge(*other.distinct_);
    }
    return absl::OkStatus();
  }
  if (other.distribution_ != nullptr) {
    if (distribution_ == nullptr) distribution_ = std::make_unique<QuantileSketch>();
    return distribution_->Merge(*other.distribution_);
  }
  if (other.count_ == 0) return absl::OkStatus();
  integers_ += other.integers_;
  if (other.reals_ != nullptr) {
    if (reals_ == nullptr) reals_ = std::make_unique<ExactSum>();
    reals_->Merge(*other.reals_);
  }
  TakeBounds(other.min_, other.max_, other.last_, other.last_time_);
  count_ += other.count_;
  if (other.values_ != nullptr) {
    if (values_ == nullptr) values_ = std::make_unique<std::vector<Number>>();
    values_->insert(values_->end(), other.values_->begin(), other.values_->end());
  }
  return absl::OkStatus();
}

void Aggregate::TakeBounds(const Number& min, const Number& max, const Number& last, int64_t last_time) {
  if (count_ == 0 || Less(min, min_)) min_ = min;
  if (count_ == 0 || Less(max_, max)) max_ = max;
  if (count_ == 0 || last_time > last_time_ || (last_time == last_time_ && Less(last_, last))) {
    last_ = last;
    last_time_ = last_time;
  }
}

void Aggregate::Add(const Summary& summary) {
  integers_ += summary.integers;
  if (summary.real_count > 0 && reals_ == nullptr) reals_ = std::make_unique<ExactSum>();
  for (size_t i = 0; i < summary.real_count; ++i) reals_->Add(summary.reals[i]);
  TakeBounds(summary.min, summary.max, summary.last, summary.last_time);
  count_ += summary.count;
}

std::optional<Summary> Aggregate::Summarize() const {
  if (integers_ > INT64_MAX || integers_ < INT64_MIN) return std::nullopt;
  Summary summary{.count = count_,
                  .integers = static_cast<int64_t>(integers_),
                  .min = min_,
                  .max = max_,
                  .last = last_,
                  .last_time = last_time_};
  if (reals_ == nullptr) return summary;
  // Each number is the rest, rounded; the rounding error is the next rest, until none is left.
  ExactSum rest = *reals_;
  double part = rest.Round();
  do {
    if (summary.real_count == Summary::kMaxReals || !std::isfinite(part)) return std::nullopt;
    summary.reals[summary.real_count++] = part;
    rest.Add(-part);
    part = rest.Round();
  } while (part != 0);
  return summary;
}

std::string Aggregate::Sketch() const {
  return distinct_ != nullptr ? distinct_->Encode() : distribution_->Encode();
}

absl::StatusOr<Number> Aggregate::Sum() const {
  if (reals_ == nullptr) {
    if (integers_ > INT64_MAX || integers_ < INT64_MIN) {
      return absl::FailedPreconditionError(
          "function: the sum of integers passes 64 bits; ask for less, or for avg");
    }
    return Number::Integer(static_cast<int64_t>(integers_));
  }
  ExactSum sum = *reals_;
  sum.Add(integers_);
  const double rounded = sum.Round();
  if (!std::isfinite(rounded)) {
    return absl::FailedPreconditionError("function: the sum passes the range of real numbers");
  }
  return Number::Real(rounded);
}

absl::StatusOr<Number> Aggregate::Average() const {
  ExactSum sum;
  if (reals_ != nullptr) sum = *reals_;
  sum.Add(integers_);
  const double average = sum.Round() / static_cast<double>(count_);
  if (!std::isfinite(average)) {
    return absl::FailedPreconditionError("function: the sum passes the range of real numbers");
  }
  return Number::Real(average);
}

/// Linear between the two nearest ranks, as numpy's default.
Number Aggregate::Percentile(double percentile) const {
  std::vector<Number> values = *values_;
  const double rank = percentile / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(rank);
  const double part = rank - static_cast<double>(below);
  const auto at = values.begin() + static_cast<ptrdiff_t>(below);
  std::nth_element(values.begin(), at, values.end(), &Less);
  if (part == 0) return *at;
  const double low = at->AsReal();
  const double high = std::min_element(at + 1, values.end(), &Less)->AsReal();
  // As numpy's _lerp: from the nearer end, so that it does not leave the interval.
  const double difference = high - low;
  if (!std::isfinite(difference)) return Number::Real(low * (1 - part) + high * part);
  return Number::Real(part >= 0.5 ? high - difference * (1 - part) : low + difference * part);
}

absl::StatusOr<std::optional<Number>> Aggregate::Result(const Function& function) const {
  if (distribution_ != nullptr) {
    if (distribution_->count() == 0) return std::nullopt;
    switch (function.kind) {
      case Kind::kCount:
        return Number::Integer(static_cast<int64_t>(distribution_->count()));
      case Kind::kMin:
        return Number::Real(distribution_->min());
      case Kind::kMax:
        return Number::Real(distribution_->max());
      default:
        return Number::Real(distribution_->Quantile(function.percentile / 100));
    }
  }
  if (count_ == 0) return std::nullopt;
  switch (function.kind) {
    case Kind::kSum: {
      KV_ASSIGN_OR_RETURN(const Number sum, Sum());
      return sum;
    }
    case Kind::kCount:
      return Number::Integer(static_cast<int64_t>(count_));
    case Kind::kAvg: {
      KV_ASSIGN_OR_RETURN(const Number average, Average());
      return average;
    }
    case Kind::kMin:
      return min_;
    case Kind::kMax:
      return max_;
    case Kind::kLast:
      return last_;
    case Kind::kPercentile:
      return Percentile(function.percentile);
    case Kind::kDistinct:
      return Number::Integer(std::llround(distinct_->Estimate()));
  }
  return std::nullopt;
}

size_t Aggregate::memory() const {
  size_t bytes = 0;
  if (reals_ != nullptr) bytes += sizeof(ExactSum);
  if (values_ != nullptr) bytes += values_->capacity() * sizeof(Number);
  if (distinct_ != nullptr) bytes += sizeof(HyperLogLog);
  if (distribution_ != nullptr) bytes += sizeof(QuantileSketch) + distribution_->memory();
  return bytes;
}

}  // namespace kvstore::reports
