#pragma once

#include "absl/status/statusor.h"
#include "json/json.h"
#include "kvstore/v1/kvstore.pb.h"
#include "kvstore/v1/shards.pb.h"

/// Commands in JSON, {"command": VERB, ...options}, as requests whose `verb` is one of many messages.
namespace kvstore::client {

/// Makes the request of a command of Migrations::Command. It has the command as a `verb`, and as JSON for
/// servers that do not know that yet. A command that no `verb` can express is there as JSON only, so that the
/// server says what is wrong with it.
v1::MigrateRequest MigrateRequestOf(const Json& command);

/// Makes the request of a command of ShardOperations. INVALID_ARGUMENT if no `verb` can express it.
absl::StatusOr<v1::OperateShardsRequest> OperateShardsRequestOf(const Json& command);

}  // namespace kvstore::client
