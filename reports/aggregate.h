#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
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

/// The function by which a query turns the points of a step into one number.
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

/// The values of an Aggregate, in numbers that can be stored. A caller that needs only some functions may
/// leave out what the others need.
struct Summary {
  static constexpr size_t kMaxReals = 4;

  uint64_t count = 0;    ///< At least 1.
  int64_t integers = 0;  ///< The sum of the values that are integers.
  /// The first `real_count` are numbers whose exact sum is that of the values that are real; 0: there are
  /// none.
  std::array<double, kMaxReals> reals{};
  size_t real_count = 0;
  Number min;
  Number max;
  Number last;
  int64_t last_time = 0;
};

/// The points of one step, as far as a function needs them. The result does not depend on the order in which
/// they came: sums are exact until the end, and of several last points of one time the greatest counts. A
/// value that is moved; externally synchronised.
class Aggregate {
 public:
  /// keep_values  for percentiles of plain values, which are exact and take 16 bytes for each.
  void Add(int64_t time, const Number& value, bool keep_values);
  /// The same for some integers, at least one, without keeping them.
  ///
  /// last_time  of the last one, which is the greatest of their times.
  void AddIntegers(std::span<const int64_t> values, int64_t last_time);
  /// The same for integers of which only the sum is known: nobody will ask for more than the count, the sum
  /// and the average.
  void AddSum(uint64_t count, Int128 sum);
  /// An encoded sketch. DATA_LOSS if it does not decode.
  absl::Status AddSketch(MetricKind kind, const std::string& sketch);
  absl::Status Merge(Aggregate&& other);
  /// Adds values that were summed before: the result is that of adding each of them.
  void Add(const Summary& summary);

  /// Its values, of which there must be at least one; nullopt where their sum takes more than a Summary has
  /// room for.
  std::optional<Summary> Summarize() const;
  /// The union of its sketches, encoded; only if it has any.
  std::string Sketch() const;

  /// The result; nullopt if there are no points. FAILED_PRECONDITION if a sum of integers passes 64 bits, or
  /// a sum of real numbers the range of doubles.
  absl::StatusOr<std::optional<Number>> Result(const Function& function) const;
  /// Whether there are real numbers among the values; their sum lies outside of this object.
  bool sums_reals() const { return reals_ != nullptr; }
  /// Bytes outside of this object, roughly.
  size_t memory() const;

 private:
  /// Takes what the bounds of more values say; before they are counted.
  void TakeBounds(const Number& min, const Number& max, const Number& last, int64_t last_time);
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
