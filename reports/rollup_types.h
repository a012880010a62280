#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvstore::reports {

inline constexpr size_t kMaxRollups = 16;  ///< Roll-ups of one report.
/// Steps of a roll-up in one period of its report.
inline constexpr uint64_t kMaxRollupSteps = 100'000;

/// A roll-up that a report declares: its points summed over the segment keys that are left out, and over
/// steps of time. Queries use it where it says the same as the points (rollup.h).
struct Rollup {
  std::vector<std::string> keys;  ///< A subset of the report's segment keys; may be empty.
  uint64_t step_ms = 0;           ///< A multiple of the report's resolution that divides its period.
  uint32_t id = 0;                ///< Given by the store; no other roll-up of the report ever has it.
  friend bool operator==(const Rollup&, const Rollup&) = default;
};

/// The work that making the roll-ups of a report took.
struct RollupResult {
  uint64_t rows = 0;          ///< Rows of points looked at.
  uint64_t rows_current = 0;  ///< Those among `rows` whose roll-ups were up to date.
  uint64_t rows_written = 0;  ///< Those among `rows` whose roll-ups were made.
  uint64_t bytes_written = 0;
};

}  // namespace kvstore::reports
