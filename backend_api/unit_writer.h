#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "backend_api/local_id_floors.h"
#include "backend_api/unit.h"

namespace kvstore {

/// Fills a dataset that clients must not write to meanwhile. Thread-safe.
///
/// Each change names the worker's epoch (migration_control.h): that of an earlier worker is refused with
/// ABORTED, atomically with the change.
class UnitWriter {
 public:
  virtual ~UnitWriter() = default;

  /// Replaces the units' cells by exactly these, each unit atomically; a unit without cells is removed. Keys
  /// must differ. FAILED_PRECONDITION unless the state is kImporting or kMoved.
  ///
  /// fresh  Nobody but this worker has ever written these keys here: saves reading what is there.
  [[nodiscard]] virtual absl::Status Replace(uint64_t epoch, std::span<const Unit> units, bool fresh) = 0;

  // These take the results of UnitReader::LastTimestamp and NextLocalIds on the other side, before clients
  // write on this one.

  /// Makes all timestamps that are assigned from now on higher than this one.
  [[nodiscard]] virtual absl::Status RaiseTimestamp(uint64_t epoch, uint64_t timestamp) = 0;
  /// Makes all local IDs that are assigned from now on at least these. INVALID_ARGUMENT if a shard of
  /// `next.shards` is not open here. `next.others` applies to all other shards that are open here.
  [[nodiscard]] virtual absl::Status RaiseLocalIds(uint64_t epoch, const LocalIdFloors& next) = 0;
};

}  // namespace kvstore
