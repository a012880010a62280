#pragma once

#include <filesystem>
#include <memory>

#include "absl/status/statusor.h"
#include "backends/mysql/backend.h"
#include "kvstore_api/open.h"

namespace kvstore {

/// Opens the backend of a fleet of MySQL servers, with the shard maps from where its options say.
///
/// cache  the folder in which copies of the last good shard maps are kept; empty: no copies are kept.
///
/// UNAVAILABLE if the maps can be read neither there nor from the copies; INVALID_ARGUMENT names the entry of
/// a map that is wrong. Servers are connected to when they are needed.
absl::StatusOr<std::unique_ptr<MySqlBackend>> OpenMySqlBackend(const MySqlFleetOptions& fleet,
                                                               const std::filesystem::path& cache);

}  // namespace kvstore
