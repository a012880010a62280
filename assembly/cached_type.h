#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "assembly/backend_type.h"
#include "kvstore_api/open.h"

namespace kvstore {

namespace cached {
class Caches;
}

/// The type kCached: caches in front of a backend.
BackendType CachedType();

/// Opens the caches of a backend alone, for operators.
///
/// name  of the backend; empty: the only one of type kCached.
///
/// INVALID_ARGUMENT if the options have no such backend, or no ZooKeeper.
absl::StatusOr<std::unique_ptr<cached::Caches>> OpenCaches(const OpenOptions& options,
                                                           const std::string& name);

}  // namespace kvstore
