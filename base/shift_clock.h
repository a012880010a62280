#pragma once

#include <cstdint>

namespace kvstore {

/// For tests: from now on WallClockMs of this process is ahead of the machine's clock by so many ms;
/// negative: behind. Thread-safe.
void ShiftWallClock(int64_t ms);

}  // namespace kvstore
