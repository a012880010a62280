#pragma once

#include <memory>

#include "backend_api/shard_operations.h"
#include "kvstore_api/open.h"

namespace kvstore::cli {

/// Returns what a server operates its fleet with, by the logins of its own configuration. Where that has none
/// for operators, each command is FAILED_PRECONDITION, and the message says what to configure. Null if the
/// configuration names no ZooKeeper, where shard maps would be.
std::unique_ptr<ShardOperations> ServeShards(const OpenOptions& store);

}  // namespace kvstore::cli
