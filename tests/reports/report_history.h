#pragma once

#include <cstdint>
#include <functional>

#include "kvstore_api/kvstore.h"

namespace kvstore::testing {

struct HistoryOptions {
  uint64_t seed = 0;
  uint64_t steps = 0;
  /// Writes to the store may fail; a batch is repeated until it has gone through.
  bool faulty = false;
  /// Points may expire, by a clock that is shifted (base/shift_clock.h) until the history has ended.
  bool expires = false;
  /// The clocks of loaders may be 40 days behind or ahead. The store must not follow the clock of this
  /// process then.
  bool loaders_apart = false;
  /// Called before each step with its number; may be null. It may advance the store's clock, by a day at
  /// most.
  std::function<void(uint64_t)> before_step;
};

/// A random history of a report on a store beside a plain model of it: writes of any age, replacements, adds,
/// batches that are repeated, also with other points, deletes, expiry, added segment keys; compactions, and
/// roll-ups that are declared, removed and made at any time. Every answer must be the model's, with roll-ups
/// and without. Failures are reported to gtest. Returns how many rows of points roll-ups stood for.
uint64_t RunReportHistory(KVStore& store, const HistoryOptions& options);

}  // namespace kvstore::testing
