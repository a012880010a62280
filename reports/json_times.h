#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/time/time.h"
#include "json/flat_json.h"
#include "json/json_fields.h"
#include "reports/number.h"
#include "reports/steps.h"

/// Times, stretches of time and numbers in the JSON of reports. Mistakes are left in `fields`.
namespace kvstore::reports {

/// A time that must be there: RFC 3339, a date in `zone`, or ms since 1970; no later than the year 9999.
int64_t ReadTime(JsonFields& fields, std::string_view name, const absl::TimeZone& zone);
/// The mistake of a time that is neither a text nor a number of ms in range.
inline constexpr std::string_view kTimeProblem =
    "must be RFC 3339 (2013-01-31T05:00:00Z), a date (2013-01-31), or milliseconds since 1970, no later than "
    "the year 9999 (253402300799999)";
std::optional<Step> ReadStep(JsonFields& fields, std::string_view name);
/// A stretch of fixed length in ms; "0" where that is allowed.
std::optional<uint64_t> ReadLength(JsonFields& fields, std::string_view name, bool zero_allowed);

/// A JSON number, or the decimal string of an integer; nullopt for anything else, and for integers beyond
/// those of int64_t. `json` must come from ParseJson, which refuses integers that would be rounded.
std::optional<Number> NumberFromJson(const Json& json);
/// The same for a value that was read without a tree.
std::optional<Number> NumberFromFlat(const FlatValue& value);
/// The mistake of a value that NumberFromJson does not take, to be put after the name of its field.
inline constexpr std::string_view kNumberProblem =
    "must be a number, or an integer as a string; integers from -9223372036854775808 to 9223372036854775807";
/// Integers beyond 2^53 become strings, which readers with doubles alone do not round.
Json NumberToJson(const Number& number);

}  // namespace kvstore::reports
