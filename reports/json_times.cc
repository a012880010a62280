#include "reports/json_times.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/report_types.h"

namespace kvstore::reports {
namespace {

/// The decimal text of an integer; nullopt for any other text.
std::optional<Number> IntegerFromText(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return Number::Integer(value);
}

}  // namespace

int64_t ReadTime(JsonFields& fields, std::string_view name, const absl::TimeZone& zone) {
  const Json* field = fields.Require(name);
  if (field == nullptr) return 0;
  if (field->is_number_unsigned() && field->get<uint64_t>() <= static_cast<uint64_t>(kMaxTimeMs) + 1) {
    return static_cast<int64_t>(field->get<uint64_t>());
  }
  if (!field->is_string()) {
    fields.Fail(name, kTimeProblem);
    return 0;
  }
  const auto time = ParseTimeText(field->get_ref<const std::string&>(), zone);
  if (time.ok()) return *time;
  fields.Fail(name, std::string(time.status().message()));
  return 0;
}

std::optional<Step> ReadStep(JsonFields& fields, std::string_view name) {
  const auto text = fields.OptionalString(name);
  if (!text) return std::nullopt;
  const auto step = ParseStep(*text);
  if (step.ok()) return *step;
  fields.Fail(name, std::string(step.status().message()));
  return std::nullopt;
}

std::optional<uint64_t> ReadLength(JsonFields& fields, std::string_view name, bool zero_allowed) {
  const Json* field = fields.Find(name);
  if (field != nullptr && zero_allowed && *field == "0") return 0;
  const auto step = ReadStep(fields, name);
  if (!step) return std::nullopt;
  const auto length = FixedLength(*step);
  if (length) return static_cast<uint64_t>(*length);
  fields.Fail(name, "must have a fixed length: ms, s, m, h, d or w");
  return std::nullopt;
}

std::optional<Number> NumberFromJson(const Json& json) {
  if (json.is_number_unsigned()) {
    const auto value = json.get<uint64_t>();
    if (value > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    return Number::Integer(static_cast<int64_t>(value));
  }
  if (json.is_number_integer()) return Number::Integer(json.get<int64_t>());
  if (json.is_number_float()) return Number::Real(json.get<double>());
  if (!json.is_string()) return std::nullopt;
  return IntegerFromText(json.get_ref<const std::string&>());
}

std::optional<Number> NumberFromFlat(const FlatValue& value) {
  switch (value.kind) {
    case FlatValue::Kind::kInteger:
      return Number::Integer(value.integer);
    case FlatValue::Kind::kReal:
      return Number::Real(value.real);
    case FlatValue::Kind::kString:
      return IntegerFromText(value.text);
    default:
      return std::nullopt;
  }
}

Json NumberToJson(const Number& number) {
  constexpr int64_t kExact = int64_t{1} << 53;
  if (!number.is_integer()) return number.real();
  if (number.integer() > kExact || number.integer() < -kExact) return std::to_string(number.integer());
  return number.integer();
}

}  // namespace kvstore::reports
