#pragma once

#include "kvstore_api/kvstore.h"

namespace kvstore {

/// Hands every call on to another store. A class that changes some calls derives from it and overrides those.
/// Thread-safe, if the other store is.
class ForwardingStore : public KVStore {
 public:
  /// store  Must outlive this.
  explicit ForwardingStore(KVStore& store) : store_(store) {}

#define KV_METHOD_WITH(name, result, parameters, arguments) \
  result name parameters override { return store_.name arguments; }
#include "backend_api/operations.def"

 protected:
  KVStore& store_;
};

}  // namespace kvstore
