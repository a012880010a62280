#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/change_capture.h"
#include "backend_api/unit.h"
#include "backends/mysql/driver/connection.h"
#include "backends/mysql/fleet/dataset.h"

/// Units (backend_api/unit.h) in the tables of one shard. Functions that take a
/// Connection throw sql::SQLException.
namespace kvstore::mysql {

/// Which cells of a column are visible at a time.
struct Visible {
  /// as_of  the time, in ms; the server's own is used in its place if that is earlier (see NoLater).
  Visible(const Dataset& dataset, const Connection& connection, uint64_t as_of);
  uint64_t oldest = 0;        ///< Cells with lower timestamps have expired.
  uint64_t max_versions = 0;  ///< Only so many of the newest cells are visible; UINT64_MAX: all.
};

/// The kind of a dataset's units.
struct UnitKind {
  Shape shape = Shape::kRows;
  uint32_t type = 0;  ///< The type in the IDs of objects; unused for other shapes.
};

/// Returns the shard of a unit, by its key, or for rows by enc(row) alone. INVALID_ARGUMENT for a key of
/// another shape.
absl::StatusOr<uint32_t> ShardOfUnit(const UnitKind& kind, std::string_view key, uint32_t mod_shards);

/// Reads those of `keys` at `places`, all on the table's shard, into the same places of `units`. A unit that
/// is absent gets no cells.
void ReadUnits(Connection& connection, const Table& table, const UnitKind& kind, const Visible& visible,
               std::span<const std::string> keys, std::span<const size_t> places, std::vector<Unit>& units);

/// A part of a shard's units, in the order of their keys.
struct UnitList {
  std::vector<Unit> units;  ///< Those that have visible cells.
  std::string next;         ///< The key at which to continue; empty at the end.
};
/// Lists units from a key on.
///
/// from  may be a part of a key; empty: from the first unit on.
/// end   units with keys from here on are not wanted, but some may be listed; empty: all are wanted.
UnitList ListUnits(Connection& connection, const Table& table, const UnitKind& kind, const Visible& visible,
                   std::string_view from, std::string_view end);

/// Writes those of `units` at `places`, all on the table's shard; those without cells are removed. The caller
/// has begun a transaction.
///
/// fresh  nothing is stored under these keys yet: see UnitWriter::Replace.
void WriteUnits(Connection& connection, const Table& table, const UnitKind& kind, std::span<const Unit> units,
                std::span<const size_t> places, bool fresh);

/// Returns the first entries of the shard's dirty log, up to `limit`. Reads of the units that come after it
/// see the writes that made these entries.
std::vector<DirtyEntry> ReadDirty(Connection& connection, const Table& table, const UnitKind& kind,
                                  size_t limit);
/// Removes the entries with these IDs from the shard's dirty log.
void RemoveDirty(Connection& connection, const Table& table, std::span<const uint64_t> ids);

}  // namespace kvstore::mysql
