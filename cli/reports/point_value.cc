#include "cli/reports/point_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

#include "base/trim.h"
#include "reports/json_times.h"

namespace kvstore::cli {
namespace {

using reports::MetricKind;
using reports::Number;

absl::Status NoNumber(std::string_view text) {
  return absl::InvalidArgumentError(
      fmt::format("'{}' is not a number: give a whole number of 64 bits or a finite real number", text));
}

/// Calls `take` with each part between two ';', until one returns false.
template <typename Take>
bool EachPart(std::string_view text, const Take& take) {
  while (true) {
    const size_t end = text.find(';');
    if (!take(text.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    text.remove_prefix(end + 1);
  }
}

/// The values in a field, which may be an array or a value alone.
std::span<const FlatValue> ValuesOf(const FlatJson& json, const FlatValue& given) {
  return given.kind == FlatValue::Kind::kArray ? json.Elements(given) : std::span(&given, 1);
}

absl::Status ReadMembers(const FlatJson& json, const FlatValue& given, PointValue& value) {
  value.members.clear();
  for (const FlatValue& member : ValuesOf(json, given)) {
    if (member.kind != FlatValue::Kind::kString) {
      return absl::InvalidArgumentError("a distinct metric takes a string, or an array of strings");
    }
    value.members.emplace_back(member.text);
  }
  return absl::OkStatus();
}

absl::Status ReadValues(const FlatJson& json, const FlatValue& given, PointValue& value) {
  value.values.clear();
  for (const FlatValue& number : ValuesOf(json, given)) {
    switch (number.kind) {
      case FlatValue::Kind::kInteger:
        value.values.push_back(static_cast<double>(number.integer));
        break;
      case FlatValue::Kind::kLargeInteger:
      case FlatValue::Kind::kReal:
        value.values.push_back(number.real);
        break;
      default:
        return absl::InvalidArgumentError("a distribution takes a number, or an array of numbers");
    }
  }
  if (value.values.empty()) return absl::InvalidArgumentError("a distribution takes at least one number");
  return absl::OkStatus();
}

}  // namespace

std::optional<Number> ParseNumber(std::string_view text) {
  text = Trimmed(text);
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  int64_t integer = 0;
  const auto [after, error] = std::from_chars(begin, end, integer);
  if (after == end && error == std::errc() && !text.empty()) return Number::Integer(integer);
  // Whole numbers beyond 64 bits would lose digits as real ones. "inf" and "nan" are refused below.
  if (after == end) return std::nullopt;
  double real = 0;
  const auto [real_after, real_error] = std::from_chars(begin, end, real);
  if (real_after != end || real_error != std::errc() || !std::isfinite(real)) return std::nullopt;
  return Number::Real(real);
}

absl::Status ReadCell(std::string_view text, MetricKind kind, PointValue& value) {
  if (kind == MetricKind::kValue) {
    const auto number = ParseNumber(text);
    if (!number) return NoNumber(text);
    value.number = *number;
    return absl::OkStatus();
  }
  value.members.clear();
  value.values.clear();
  absl::Status wrong;
  EachPart(text, [&](std::string_view part) {
    if (kind == MetricKind::kDistinct) {
      value.members.emplace_back(part);
      return true;
    }
    const auto number = ParseNumber(part);
    if (number) {
      value.values.push_back(number->AsReal());
    } else {
      wrong = NoNumber(part);
    }
    return number.has_value();
  });
  return wrong;
}

absl::Status ReadJsonValue(const FlatJson& json, const FlatValue& given, MetricKind kind, PointValue& value) {
  if (kind == MetricKind::kDistinct) return ReadMembers(json, given, value);
  if (kind == MetricKind::kDistribution) return ReadValues(json, given, value);
  const auto number = reports::NumberFromFlat(given);
  if (!number) return absl::InvalidArgumentError(std::string(reports::kNumberProblem));
  value.number = *number;
  return absl::OkStatus();
}

absl::Status AddPoint(reports::Batch& batch, int64_t time, reports::Batch::Segments segments,
                      const PointValue& value) {
  switch (batch.info().metrics[value.metric].kind) {
    case MetricKind::kDistinct:
      return batch.AddDistinct(value.metric, time, segments, value.members);
    case MetricKind::kDistribution:
      return batch.AddDistribution(value.metric, time, segments, value.values);
    case MetricKind::kValue:
      break;
  }
  return batch.Add(value.metric, time, segments, value.number);
}

}  // namespace kvstore::cli
