#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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
  kAdvanceClock,  ///< `count` slots, and a mark
  kReadClock,     ///< `count` slots
  kLockClock,     ///< a slot and its mark
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

/// The server's clock in ms.
inline constexpr std::string_view kNowMs = "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS UNSIGNED)";

/// The mod shard's table of clocks; no dataset can have this name.
inline constexpr char kClockTable[] = "kv$clock";
/// The slots of each mod shard's clock. Stored: never change it.
inline constexpr uint32_t kClockSlots = 64;
/// In a row of its own, behind those of all slots, each slot has a mark: a number that the transaction which
/// moved the slot on last has made up. It tells whether a transaction was committed whose answer was lost. As
/// a time it is long past, for programs that take it for one. Stored, as kClockSlots.
constexpr uint32_t MarkOf(uint32_t slot) { return kClockSlots + slot; }
inline constexpr uint64_t kMaxMark = (uint64_t{1} << 40) - 1;

/// The text of a statement.
///
/// count      how many of what `sql` repeats.
/// returning  whether the server knows INSERT ... RETURNING: MariaDB does. Else the caller asks again, with
///            kLastInsertId or kReadClock.
std::string Text(Sql sql, const Table& table, size_t count, bool returning);

}  // namespace kvstore::mysql
