#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string_view>

#include "absl/status/statusor.h"

/// Numbers, durations and times as people give them on the command line. CLI11 alone would take -1 for
/// 18446744073709551615, and 010 for 8.
namespace kvstore::cli {

/// Decimal digits and nothing else.
absl::StatusOr<uint64_t> ParseWhole(std::string_view text,
                                    uint64_t max = std::numeric_limits<uint64_t>::max());

/// Milliseconds: a whole number of them, or one with a unit: 500ms, 10s, 5m, 1h, 30d.
absl::StatusOr<uint64_t> ParseDuration(std::string_view text,
                                       uint64_t max = std::numeric_limits<uint64_t>::max());

/// Milliseconds since 1970: a whole number of them, or a date in UTC: 2026-01-01, 2026-01-01T12:30Z,
/// 2026-01-01T12:30:00Z, 2026-01-01T12:30:00.250Z.
absl::StatusOr<uint64_t> ParseTime(std::string_view text);

/// Makes an option take a duration, of at most `max` ms, and its help say so.
CLI::Option* TakeDuration(CLI::Option* option, uint64_t max = std::numeric_limits<uint64_t>::max());
/// Makes an option take a time, and its help say so.
CLI::Option* TakeTime(CLI::Option* option);
/// Makes all options of all commands that hold whole numbers, and are of the kinds above not, refuse what
/// ParseWhole refuses.
void RefuseBadNumbers(CLI::App& app);

}  // namespace kvstore::cli
