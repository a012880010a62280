#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/exact_sum.h"
#include "reports/hyperloglog.h"
#include "reports/number.h"
#include "reports/quantile_sketch.h"
#include "reports/report_types.h"

namespace kvstore::reports {

/// What a query makes of the points that fall into a step.
struct Function {
  enum class Kind : uint8_t { kSum, kCount, kAvg, kMin, kMax, kLast, kPercentile, kDistinct };
  Kind kind = Kind::kSum;
  double percentile = 0;  ///< 0..100
  friend bool operator==(const Function&, const Function&) = default;
};

/// "sum", "count", "avg", "min", "max", "last", "distinct", or a percentile: "p50", "p99.9". INVALID_ARGUMENT
/// names those that there are.
absl::StatusOr<Function> ParseFunction(std::string_view field, std::string_view name);
/// INVALID_ARGUMENT unless the function works on metrics of this kind.
absl::Status CheckFunction(const Function& function, const Metric& metric);

/// The points of one step, as far as a function needs them. What it says does not depend on the order in
/// which they came: sums are exact until the end, and of several last points of one time the greatest counts.
/// A value that is moved; externally synchronised.
class Aggregate {
 public:
  /// keep_values  for percentiles of plain values, which are exact and take 16 bytes for each.
  void Add(int64_t time, const Number& value, bool keep_values);
  /// An encoded sketch. DATA_LOSS if it does not decode.
  absl::Status AddSketch(MetricKind kind, const std::string& sketch);
  absl::Status Merge(Aggregate&& other);

  /// The result; nullopt if there are no points. FAILED_PRECONDITION if a sum of integers passes 64 bits, or
  /// a sum of real numbers the range of doubles.
  absl::StatusOr<std::optional<Number>> Result(const Function& function) const;
  /// Whether there are real numbers among the values; their sum lies outside of this object.
  bool sums_reals() const { return reals_ != nullptr; }
  /// Bytes outside of this object, roughly.
  size_t memory() const;

 private:
  absl::StatusOr<Number> Sum() const;
  absl::StatusOr<Number> Average() const;
  Number Percentile(double percentile) const;

  uint64_t count_ = 0;
  Int128 integers_ = 0;
  std::unique_ptr<ExactSum> reals_;  // null: no real numbers
  Number min_;
  Number max_;
  Number last_;
  int64_t last_time_ = 0;
  std::unique_ptr<std::vector<Number>> values_;
  std::unique_ptr<HyperLogLog> distinct_;
  std::unique_ptr<QuantileSketch> distribution_;
};

}  // namespace kvstore::reports
