#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "backends/mysql/tables.h"

/// All SQL that reads and writes data, in one place. Tables are made by the templates in sql/.
namespace kvstore::mysql {

/// A kind of statement; statements.cc has the texts, and says what their parameters are.
enum class Sql : uint8_t {
  // objects
  kCreateObject,
  kCreateObjectOnce,
  kFindRequest,
  kLastInsertId,
  kGetObject,
  kGetObjects,  ///< `count` is ShardIds(...): IDs on each of some neighbouring shards of one host
  kLockObject,
  kUpdateObject,
  kEraseObject,
  // mappings
  kAddMapping,
  kAddMappingNow,
  kRemoveMapping,
  kListAscending,
  kListDescending,
  kListAscendingAfter,
  kListDescendingAfter,
  kCountMapping,
  // rows
  kRowCells,
  kColumnCells,  ///< of `count` columns
  kNextColumnCells,
  kNextColumn,
  kCellValue,
  kRowsCells,  ///< of `count` rows
  kScanCells,  ///< of `count` columns; 0: of all
  kPutCells,   ///< `count` cells
  kNewestValue,
  kHasCell,
  kAdvanceClock,  ///< `count` slots
  kReadClock,     ///< `count` slots
  kDeleteRow,
  kDeleteColumns,  ///< `count` columns
  kDeleteCell,
  // migrations
  kLockState,
  kColumnsCells,     ///< of `count` (row, column)
  kRowColumnsCells,  ///< of `count` columns
  kUnitCellsFrom,
  kDeleteColumnsOf,  ///< `count` (row, column)
  kObjects,          ///< `count` local IDs
  kObjectsFrom,
  kLastLocalId,
  kPutObjects,     ///< `count`
  kDeleteObjects,  ///< `count`
  kMappings,       ///< `count` (from, to)
  kMappingsFrom,
  kPutMappings,     ///< `count`
  kDeleteMappings,  ///< `count` (from, to)
  kReadDirtyPairs,
  kReadDirtyIds,
  kRemoveDirty,  ///< `count`
  kDirtyLag,
  kLastOfClock,
  // purge
  kPurgeRow,
  kPurgeRows,
  kPurgeExpired,
  kPurgeKeep,
  kPurgeSurplus,
};

/// The count of a statement that repeats `ids` (below 65,536) parameters for each of `shards` shards, from
/// its table's shard on.
constexpr size_t ShardIds(size_t shards, size_t ids) { return shards << 16 | ids; }

/// Values of at most this many bytes come with the cells that a statement lists; larger ones are fetched one
/// by one, so that the memory a list takes has a bound.
inline constexpr size_t kInlineValueBytes = size_t{16} << 10;

/// The mod shard's table of clocks; no dataset can have this name.
inline constexpr char kClockTable[] = "kv$clock";

/// The text of a statement.
///
/// count      how many of what `sql` repeats.
/// returning  whether the server knows INSERT ... RETURNING: MariaDB does. Else the caller asks again, with
///            kLastInsertId or kReadClock.
std::string Text(Sql sql, const Table& table, size_t count, bool returning);

}  // namespace kvstore::mysql
