#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/mysql/connection.h"
#include "backends/mysql/dataset.h"
#include "kvstore_api/migration_endpoint.h"

/// Units of migrations in the tables of one shard. What takes a Connection throws sql::SQLException.
namespace kvstore::mysql {

/// Which cells of a column are visible at a time, which is never later than the server's own (see NoLater).
struct Visible {
  Visible(const Dataset& dataset, const Connection& connection, uint64_t as_of);
  uint64_t oldest = 0;
  uint64_t max_versions = 0;
};

/// A dataset's units, by its shape.
struct UnitKind {
  Shape shape = Shape::kRows;
  uint32_t type = 0;  ///< Objects.
};

/// The shard of a unit, or of enc(row); INVALID_ARGUMENT for a key of another shape.
absl::StatusOr<uint32_t> ShardOfUnit(const UnitKind& kind, std::string_view key, uint32_t mod_shards);

/// Reads those of `keys` at `places`, all on the table's shard, into the same places of `units`.
void ReadUnits(Connection& connection, const Table& table, const UnitKind& kind, const Visible& visible,
               std::span<const std::string> keys, std::span<const size_t> places, std::vector<Unit>& units);

/// A part of a shard's units in order of their keys.
struct UnitList {
  std::vector<Unit> units;  ///< Those with visible cells.
  std::string next;         ///< Where to go on; empty at the end.
};
/// From the key on, which need not be a whole one.
///
/// end  keys from here on are not wanted, though some may come; empty: all are.
UnitList ListUnits(Connection& connection, const Table& table, const UnitKind& kind, const Visible& visible,
                   std::string_view from, std::string_view end);

/// Writes those of `units` at `places`, all on the table's shard. In a transaction.
void WriteUnits(Connection& connection, const Table& table, const UnitKind& kind, std::span<const Unit> units,
                std::span<const size_t> places, bool fresh);

/// Up to `limit` entries of the shard's dirty log.
std::vector<DirtyEntry> ReadDirty(Connection& connection, const Table& table, const UnitKind& kind,
                                  size_t limit);
/// Removes entries of the shard.
void RemoveDirty(Connection& connection, const Table& table, std::span<const uint64_t> ids);

}  // namespace kvstore::mysql
