#pragma once

#include <functional>

#include "backend_api/backups.h"
#include "backend_api/migrations.h"
#include "backend_api/shard_maps.h"
#include "backend_api/shard_operations.h"
#include "base/metrics_sink.h"

namespace kvstore {

/// The parts that a server serves beside the data. Its owner has them, and they must outlive the server.
struct ServerParts {
  Migrations* migrations = nullptr;  ///< Migrates the datasets of this process; null: none is migrated.
  ShardMaps* shard_maps = nullptr;   ///< The shard maps of the store's fleet; null: there are none.
  ShardOperations* shard_operations = nullptr;  ///< Operates that fleet; null: there is none.
  Backups* backups = nullptr;                   ///< Makes backups of the store; null: none is made.
  /// Adds the figures of other parts of the process to /metrics; called by any thread. Null: there are none.
  std::function<void(MetricsSink&)> describe = nullptr;
};

}  // namespace kvstore
