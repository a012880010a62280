#pragma once

#include <filesystem>

#include "absl/status/status.h"
#include "fleet_backup/host_restore.h"
#include "fleet_backup/scratch_server.h"
#include "shardops/move_record.h"

namespace kvstore::cli {

/// Writes a configuration into the folder of restored shards, DIR/kv.json, by which kv reads the shards as a
/// store of its own, while the server of that folder runs: with the settings that the datasets had, and maps
/// that have these shards alone. Mod shards that were not restored are made, empty, since the shard of a row
/// depends on their number.
absl::Status WriteStore(const std::filesystem::path& folder, const fleet_backup::ScratchServer& server,
                        const fleet_backup::RestoredHost& restored, const shardops::MoveRange& shards);

}  // namespace kvstore::cli
