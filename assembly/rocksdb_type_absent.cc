#include "assembly/rocksdb_type.h"

/// Takes the place of rocksdb_type.cc where KV_WITH_ROCKSDB is off.
namespace kvstore {

BackendType RocksDbType() {
  return {.name = kRocksDb,
          .only_one = true,
          .available = absl::FailedPreconditionError(
              "config: a backend has the type rocksdb, as one has if backends is missing, but this program "
              "was built without it (KV_WITH_ROCKSDB=OFF); use a build that has it, or name other backends")};
}

}  // namespace kvstore
