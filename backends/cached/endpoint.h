#pragma once

#include <memory>

#include "backend_api/migration_endpoint.h"
#include "backends/cached/protocol/caches.h"
#include "kvstore_api/dataset.h"

namespace kvstore::cached {

/// A dataset behind a cache, as a migration sees it: that of the backend behind, and when the dataset leaves,
/// what is cached of it is worth nothing any more. The backend's own check comes first: as long as it answers
/// clients, the cache may too.
std::unique_ptr<MigrationEndpoint> MakeEndpoint(std::unique_ptr<MigrationEndpoint> of,
                                                std::shared_ptr<Caches> caches, CacheKind kind,
                                                const DatasetSpec& spec);

}  // namespace kvstore::cached
