#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/mysql/connection.h"
#include "backends/mysql/tables.h"
#include "kvstore_api/dataset.h"

/// Makes and removes the tables of datasets where others may be at them: a migration that has them under
/// another name, a move that has taken the shard away, a process that drops the dataset or makes the next one
/// of its name. What takes a Connection throws sql::SQLException.
namespace kvstore::mysql {

/// The datasets that the catalog has on these servers, as of now. Called by many threads, one at a time.
using ReadSpecs = std::function<absl::StatusOr<std::vector<DatasetSpec>>()>;
/// What was left as it is: why, and how many tables or shards.
using LeftAlone = std::map<std::string, uint64_t>;

/// Makes the dataset's table on a shard. OK if it is there, also under the name that a migration gives it.
///
/// UNAVAILABLE          another process is at the tables, or the shard has moved to another host.
/// FAILED_PRECONDITION  the shard's database is missing; or a table of another dataset has the name
///                      (LeftoverError).
absl::Status CreateTables(Connection& connection, const DatasetSpec& spec, uint32_t shard);

enum class Removed : uint8_t { kInAnyCase, kIfEmpty };

/// Removes what there is of this incarnation of the dataset on a shard, and nothing else.
///
/// UNAVAILABLE          another process is at the tables.
/// FAILED_PRECONDITION  kIfEmpty: there are rows, and nothing was removed.
absl::Status DropTables(Connection& connection, const DatasetSpec& spec, uint32_t shard,
                        Removed removed = Removed::kInAnyCase);

/// FAILED_PRECONDITION if there are rows of this incarnation on a shard, which the catalog does not name.
/// UNAVAILABLE if the shard has moved.
absl::Status CheckEmpty(Connection& connection, const DatasetSpec& spec, uint32_t shard);

/// Makes what is missing of a shard: its database, and the tables of `specs` of this space that `read` has
/// too. What has moved to another host, or migrates, is left alone. UNAVAILABLE as above.
///
/// specs       as the catalog was a moment ago: saves reading it where nothing is missing.
/// mod_shards  how many mod shards there are.
absl::Status MakeShard(Connection& connection, Space space, uint32_t shard, uint32_t mod_shards,
                       const std::vector<DatasetSpec>& specs, const ReadSpecs& read, LeftAlone& left_alone);

}  // namespace kvstore::mysql
