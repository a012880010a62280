#pragma once

#include <cstdint>

namespace kvstore {

/// For tests: makes WallClockMs of this process run ahead of the machine's clock by `ms`, or behind it if
/// `ms` is negative. Thread-safe.
void ShiftWallClock(int64_t ms);

}  // namespace kvstore
