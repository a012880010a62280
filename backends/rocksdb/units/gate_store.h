#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "backend_api/migration_control.h"
#include "backends/rocksdb/engine/engine.h"

/// Stores the states of datasets in migrations in the default family, under "migration/" be64(incarnation). A
/// dataset without a stored state serves, and no migration of it is under way.
namespace kvstore::rocks {

/// The part of a Gate that is stored.
struct StoredGate {
  EndpointState state = EndpointState::kServing;
  bool capture = false;
  uint64_t epoch = 0;
  uint64_t ids = 0;
};

/// Reads the stored state; that of a serving dataset if there is none. DATA_LOSS if it does not decode.
absl::StatusOr<StoredGate> LoadGate(Engine& engine, uint64_t incarnation);
/// Whether a state is stored, be it one that decodes or not.
bool HasGate(Engine& engine, uint64_t incarnation);
/// Stores a state, synced to disk.
absl::Status StoreGate(Engine& engine, uint64_t incarnation, const StoredGate& gate);
/// Removes the stored state, synced to disk.
absl::Status RemoveGate(Engine& engine, uint64_t incarnation);

/// Sets the family's gate to its stored state.
absl::Status RestoreGate(Engine& engine, Family& family);

/// Opens the dirty log of the family's gate, and creates it if there is none. The caller holds the gate's
/// mutex exclusively.
absl::Status OpenDirtyLog(Engine& engine, Family& family);
/// Drops the dirty log of the family's gate. OK if there is none. The gate must not be capturing any more.
absl::Status DropDirtyLog(Engine& engine, Family& family);

}  // namespace kvstore::rocks
