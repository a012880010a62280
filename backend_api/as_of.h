#pragma once

#include <cstdint>

namespace kvstore {

/// Returns the time (ms) at which a side judges cells to be expired when a migration's worker asks for
/// `as_of`: that time, but not later than the side's own clock `now`. Otherwise a worker whose clock is ahead
/// would treat cells as expired that clients still read there.
///
/// A worker that is at most a second ahead gets what it asked for. Otherwise the result is `now` rounded down
/// to ten seconds, so that two sides that are being compared mostly use the same time.
constexpr uint64_t NoLater(uint64_t as_of, uint64_t now) {
  constexpr uint64_t kSlackMs = 1000;
  constexpr uint64_t kStepMs = 10'000;
  return as_of <= now + kSlackMs ? as_of : now - now % kStepMs;
}

}  // namespace kvstore
