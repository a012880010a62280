#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string_view>

#include "absl/status/statusor.h"

/// Parsers of the numbers, durations and times that people give on the command line. CLI11 alone would read
/// -1 as 18446744073709551615, and 010 as 8. All return INVALID_ARGUMENT for anything else than they
/// describe.
namespace kvstore::cli {

/// Parses decimal digits, and nothing else, up to `max`.
absl::StatusOr<uint64_t> ParseWhole(std::string_view text,
                                    uint64_t max = std::numeric_limits<uint64_t>::max());

/// Returns milliseconds: `text` is a whole number of them, or has units (ParseUnits): 500ms, 10s, 1h30m, 30d.
absl::StatusOr<uint64_t> ParseDuration(std::string_view text,
                                       uint64_t max = std::numeric_limits<uint64_t>::max());

/// Returns milliseconds since 1970: `text` is a whole number of them, or a date in UTC: 2026-01-01,
/// 2026-01-01T12:30Z, 2026-01-01T12:30:00Z, 2026-01-01T12:30:00.250Z. Or it is `now`, `today` or `yesterday`
/// (midnight, in UTC), or a duration before now: -7d, -1h30m.
///
/// now_ms  The time now.
absl::StatusOr<uint64_t> ParseTime(std::string_view text, uint64_t now_ms);

/// Makes an option accept a duration of at most `max` ms, and its help say so.
CLI::Option* TakeDuration(CLI::Option* option, uint64_t max = std::numeric_limits<uint64_t>::max());
/// Makes an option accept a time, and its help say so.
CLI::Option* TakeTime(CLI::Option* option);
/// Makes an option that holds a whole number refuse what is greater than `max`. For variables of less than 64
/// bits: CLI11 would say that it cannot convert the text, and not why.
CLI::Option* AtMost(CLI::Option* option, uint64_t max);
/// Makes every option of every command that holds a whole number, and is neither a duration nor a time,
/// refuse what ParseWhole refuses.
void RefuseBadNumbers(CLI::App& app);

}  // namespace kvstore::cli
