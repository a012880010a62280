#pragma once

#include <cstdint>

namespace kvstore {

/// The wall clock in ms since 1970. Thread-safe.
uint64_t WallClockMs();

}  // namespace kvstore
