#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/open.h"

/// Gives the operators of a fleet of MySQL servers what they need of a store's configuration, without opening
/// the store, which another process may have open.
namespace kvstore {

/// A function that reads the catalog anew at each call and returns its active datasets that are on the MySQL
/// servers. One thread at a time may call it.
std::function<absl::StatusOr<std::vector<DatasetSpec>>()> MySqlDatasetsReader(const OpenOptions& options);

/// The numbers of shards and tables that kv shards init has not made, by the reason.
using LeftAlone = std::map<std::string, uint64_t>;

/// Makes the databases of all open shards, and the tables of all datasets of the catalog that are on them.
/// Those that exist are kept as they are; those that are migrating or moving are left alone.
///
/// Where the maps are in ZooKeeper, this waits for up to a minute for operations that exclude it: shards that
/// are being opened, datasets that are being dropped.
///
/// progress      is told the number of shards done, and of all. May be null.
/// left_alone    may be null.
/// ignore_empty  Whether shards that other hosts have are made if no dataset has anything in those. Where the
///               maps are in files other hosts are not known, and are not asked.
///
/// INVALID_ARGUMENT if the configuration has no MySQL servers. FAILED_PRECONDITION, with nothing made, if the
/// maps are in ZooKeeper and a shard that its master lacks exists on another host that the operators know of:
/// the map is wrong then.
absl::Status InitShards(const OpenOptions& options, const Progress& progress, LeftAlone* left_alone,
                        bool ignore_empty = false);

}  // namespace kvstore
