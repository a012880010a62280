#pragma once

#include "assembly/backend_type.h"

namespace kvstore {

/// The embedded engine, "type": "rocksdb".
BackendType RocksDbType();

}  // namespace kvstore
