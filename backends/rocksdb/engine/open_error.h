#pragma once

#include "absl/status/status.h"
#include "backends/rocksdb/engine/data_dir.h"

namespace kvstore::rocks {

/// Looks for the cause of an error with which RocksDB did not open the database: a damaged log, or another
/// file. Returns the error with the advice for that cause (damage.h); tables that cannot be opened are named,
/// but their content is not read. An error other than DATA_LOSS is returned as it is.
absl::Status ExplainOpenError(const DataDir& dir, const absl::Status& problem);

}  // namespace kvstore::rocks
