#pragma once

#include <vector>

#include "json/json.h"
#include "shardmap/diff.h"
#include "shardops/findings.h"
#include "shardops/move_record.h"
#include "shardops/status.h"

/// The findings and results of operations, in the JSON of `kv shards ... --json` and of FleetCommands.
namespace kvstore::shardops {

/// {"host", "role", "pair", "shards", "problems"}, and, if the host has answered, "version", "read_only",
/// "gtid", "connections", "bytes", "clock_ahead_ms", "semi_sync", and, of a host that replicates, "follows"
/// and "lag_s".
Json ToJson(const HostReport& report);
/// {"problems", "lines", "not_asked"}
Json ToJson(const FleetCheck& check);
/// {"space", "range", "from", "to", "state", "old_tables_at", "began_ms"}
Json ToJson(const MoveRecord& move);
/// {"path", "problem"}, and "space" and "range" if they are known.
Json ToJson(const DamagedMove& move);
/// [{"range", "before", "after"}], with null for shards that are not open.
Json ToJson(const std::vector<ShardChange>& changes);

}  // namespace kvstore::shardops
