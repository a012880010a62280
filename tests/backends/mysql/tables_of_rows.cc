#include "tests/backends/mysql/tables_of_rows.h"

#include "shardmap/mod_shard.h"

namespace kvstore::testing {

std::string TableOf(std::string_view row) {
  return mysql::DatabaseName(ShardSpace::kMod, ModShard(row, TestFleet::kShards)) + ".events";
}

MariaDbServer& ServerOf(std::string_view row) {
  return SharedFleet().OfShard(ModShard(row, TestFleet::kShards));
}

}  // namespace kvstore::testing
