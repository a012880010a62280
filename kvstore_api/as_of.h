#pragma once

#include <cstdint>

namespace kvstore {

/// The time that a migration's worker reads a side as of, in ms, but never later than that side's own `now`:
/// a worker whose clock is ahead must not take for expired what clients still read there.
///
/// A second more or less is no matter. Beyond, it is the last whole ten seconds, so that two sides which are
/// compared mostly take the same time.
constexpr uint64_t NoLater(uint64_t as_of, uint64_t now) {
  constexpr uint64_t kSlackMs = 1000;
  constexpr uint64_t kStepMs = 10'000;
  return as_of <= now + kSlackMs ? as_of : now - now % kStepMs;
}

}  // namespace kvstore
