#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "assembly/built_in_types.h"
#include "kvstore_api/open.h"
#include "router/router.h"

namespace kvstore {

/// Opens what kvstore::Open opens (kvstore_api/open.h has the errors), as the router that a server needs.
///
/// types  the types that the backends of `options` may have.
absl::StatusOr<std::unique_ptr<Router>> OpenRouter(const OpenOptions& options,
                                                   const BackendTypes& types = BuiltInBackendTypes());

}  // namespace kvstore
