#pragma once

#include <cstdint>
#include <string>

#include "cli/backup_source.h"
#include "cli/command.h"
#include "kvstore_api/shard_space.h"

/// kv backup restore of MySQL servers, and of what processes share in ZooKeeper. The functions throw Failure.
namespace kvstore::cli {

/// The arguments of kv backup restore that are for servers and for ZooKeeper.
struct HostRestoreArguments {
  BackupSource source;
  std::string shards;  ///< "3424-3431": only these are kept; empty: the whole server is restored.
  ShardSpace space = ShardSpace::kId;  ///< The space that they are in.
  uint64_t at_ms = 0;                  ///< 0: as the backup has it.
  std::string to;
};

/// Restores a server, or some of its shards, into a folder.
void RestoreServer(const HostRestoreArguments& arguments, const Globals& globals);

/// Puts what a backup has of ZooKeeper's nodes into the ZooKeeper of the configuration, which has lost them:
/// of the backup that was named or, if none was, the newest that there is of any pair or of the store. With a
/// time, the nodes are as of then.
void RestoreCatalog(HostRestoreArguments& arguments, const Globals& globals);

}  // namespace kvstore::cli
