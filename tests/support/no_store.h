#pragma once

#include "backend_api/mapping_store.h"
#include "kvstore_api/kvstore.h"

namespace kvstore::testing {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

/// A store that has nothing: all of its methods are UNIMPLEMENTED. A fake derives from it, and overrides
/// those that its tests need.
class NoStore : public KVStore {
 public:
#define KV_METHOD(name, result, parameters) \
  result name parameters override { return absl::UnimplementedError("the fake has no method " #name); }
#include "backend_api/operations.def"
};

/// The same for a backend's store of mappings.
class NoMappings : public MappingStore {
 public:
#define KV_MAPPING_METHOD(name, result, parameters) \
  result name parameters override { return absl::UnimplementedError("the fake has no method " #name); }
#include "backend_api/operations.def"
};

#pragma GCC diagnostic pop

}  // namespace kvstore::testing
