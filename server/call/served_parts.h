#pragma once

#include "absl/status/statusor.h"
#include "server/call/call.h"

/// The parts of a server that it may be without. UNIMPLEMENTED says what its configuration lacks.
namespace kvstore::server {

absl::StatusOr<ShardMaps*> ShardMapsOf(const Core& core);
absl::StatusOr<Backups*> BackupsOf(const Core& core);

}  // namespace kvstore::server
