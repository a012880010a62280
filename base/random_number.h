#pragma once

#include <cstdint>

namespace kvstore {

/// A number that, as far as chance goes, nobody else has: any of 64 bits, from a generator of this thread
/// whose seed is as long. Not for secrets. Thread-safe.
uint64_t RandomNumber();

}  // namespace kvstore
