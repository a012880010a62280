#include "assembly/built_in_types.h"

#include "assembly/backend_type.h"
#include "assembly/cached_type.h"
#include "assembly/mysql_type.h"
#include "assembly/remote_type.h"
#include "assembly/rocksdb_type.h"

namespace kvstore {

const BackendTypes& BuiltInBackendTypes() {
  // A new type of backend is a line here; docs/backends.md shows what it consists of.
  static const BackendTypes kTypes = {
      RocksDbType(),
      MySqlType(),
      RemoteType(),
      CachedType(),
  };
  return kTypes;
}

}  // namespace kvstore
