#pragma once

#include <cstdint>

#include "kvstore_api/kvstore.h"

namespace kvstore::testing {

/// A random history of a report on a store beside a plain model of it: writes of any age, replacements, adds,
/// batches that are repeated, deletes, compactions and added segment keys; every answer must be the model's.
/// Failures are reported to gtest.
///
/// steps   of the history.
/// faulty  whether writes to the store may fail; a batch is repeated until it has gone through.
void RunReportHistory(KVStore& store, uint64_t seed, uint64_t steps, bool faulty);

}  // namespace kvstore::testing
