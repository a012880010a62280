#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/time/time.h"
#include "json/json_fields.h"
#include "reports/number.h"
#include "reports/steps.h"

/// Times, stretches of time and numbers in the JSON of reports. Mistakes are left in `fields`.
namespace kvstore::reports {

/// A time that must be there: RFC 3339, a date in `zone`, or ms since 1970.
int64_t ReadTime(JsonFields& fields, std::string_view name, const absl::TimeZone& zone);
std::optional<Step> ReadStep(JsonFields& fields, std::string_view name);
/// A stretch of fixed length in ms; "0" where that is allowed.
std::optional<uint64_t> ReadLength(JsonFields& fields, std::string_view name, bool zero_allowed);

/// A JSON number, or the decimal string of an integer; nullopt for anything else, and for integers beyond 64
/// bits.
std::optional<Number> NumberFromJson(const Json& json);
/// Integers beyond 2^53 become strings, which readers with doubles alone do not round.
Json NumberToJson(const Number& number);

}  // namespace kvstore::reports
