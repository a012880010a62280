#pragma once

#include "assembly/backend_type.h"

namespace kvstore {

/// A fleet of sharded MySQL servers, "type": "mysql".
BackendType MySqlType();

}  // namespace kvstore
