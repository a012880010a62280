#pragma once

#include "assembly/backend_type.h"

namespace kvstore {

/// Another KVStore server, "type": "remote".
BackendType RemoteType();

}  // namespace kvstore
