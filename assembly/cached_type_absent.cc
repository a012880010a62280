#include "assembly/cached_type.h"

/// Takes the place of cached_type.cc where KV_WITH_CACHES is off.
namespace kvstore {

BackendType CachedType() {
  return {.name = kCached,
          .available = absl::FailedPreconditionError("config: names caches in front of a backend (type "
                                                     "cached), and this program was built without them")};
}

}  // namespace kvstore
