#include "assembly/rocksdb_type.h"

/// Takes the place of rocksdb_type.cc where KV_WITH_ROCKSDB is off.
namespace kvstore {

BackendType RocksDbType() {
  return {.name = kRocksDb,
          .only_one = true,
          .available = absl::FailedPreconditionError(
              "config: names an embedded backend (type rocksdb), and this program was built without that "
              "engine")};
}

}  // namespace kvstore
