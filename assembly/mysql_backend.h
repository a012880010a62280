#pragma once

#include <filesystem>
#include <memory>

#include "absl/status/statusor.h"
#include "backends/mysql/backend.h"
#include "registry/open.h"

namespace kvstore {

/// The backend of a configuration.
///
/// cache  folder where the last good shard maps are kept; empty: nowhere.
absl::StatusOr<std::unique_ptr<MySqlBackend>> OpenMySqlBackend(const MySqlFleet& fleet,
                                                               const std::filesystem::path& cache);

}  // namespace kvstore
