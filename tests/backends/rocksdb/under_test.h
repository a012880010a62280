#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "backends/rocksdb/backend.h"
#include "tests/backend_suite/suite.h"
#include "tests/support/random.h"

namespace kvstore::testing {

/// Opens the backend in a folder, with little memory for its buffers, so that it makes files early.
///
/// cache_answers  false: each read reads; for tests of what that costs.
absl::StatusOr<std::unique_ptr<RocksDbBackend>> OpenRocksDb(const std::filesystem::path& dir,
                                                            std::span<const DatasetSpec> known,
                                                            bool cache_answers = true);

/// Flushes a memtable to a file, or compacts some of the files into a level, chosen at random.
void Rearrange(RocksDbBackend& backend, const DatasetSpec& spec, Random& random);

/// Describes the backend to the suites, with both functions.
UnderTest RocksDb();

}  // namespace kvstore::testing
