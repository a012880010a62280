#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace kvstore::exports {

/// Returns the path of kv-parquet: what the environment variable KV_PARQUET names, or else the program of
/// that name beside this one. FAILED_PRECONDITION, with what to install, if there is none.
absl::StatusOr<std::string> FindParquetProgram();

}  // namespace kvstore::exports
