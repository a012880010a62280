#include "server/call/served_parts.h"

namespace kvstore::server {

absl::StatusOr<ShardMaps*> ShardMapsOf(const Core& core) {
  if (core.parts.shard_maps != nullptr) return core.parts.shard_maps;
  return absl::UnimplementedError(
      "this server has no shard maps: its configuration names neither a fleet nor a ZooKeeper");
}

absl::StatusOr<Backups*> BackupsOf(const Core& core) {
  if (core.parts.backups != nullptr) return core.parts.backups;
  return absl::UnimplementedError("this server makes no backups: its configuration has no backup.to");
}

}  // namespace kvstore::server
