#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "backends/rocksdb/backend.h"
#include "tests/backend_suite/suite.h"
#include "tests/support/random.h"

namespace kvstore::testing {

/// The backend over a folder, with little memory for its caches, so that files are made early.
absl::StatusOr<std::unique_ptr<RocksDbBackend>> OpenRocksDb(const std::filesystem::path& dir,
                                                            std::span<const DatasetSpec> known);

/// Flushes memory to a file, or compacts some of the files, at random, into whichever level the choice falls.
void Rearrange(RocksDbBackend& backend, const DatasetSpec& spec, Random& random);

/// Both, as the suites want them.
UnderTest RocksDb();

}  // namespace kvstore::testing
