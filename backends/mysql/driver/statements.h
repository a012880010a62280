#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "backends/mysql/driver/tables.h"

/// All SQL that reads and writes data. The templates in sql/ make the tables.
namespace kvstore::mysql {

/// A kind of statement. statements.cc has the texts, and lists the parameters of each. A comment's `count` is
/// the count to give to Text and Connection::Prepare.
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
  kScanObjects,
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
  kScanWindow,
  kScanLast,
  kPutCells,  ///< `count` cells
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

/// Returns the count for kGetObjects: `ids` (below 65,536) parameters for each of `shards` shards, the first
/// of which is the table's.
constexpr size_t ShardIds(size_t shards, size_t ids) { return shards << 16 | ids; }

/// Returns on how many neighbouring shards a statement of this count has its table, the first of which is the
/// table's.
constexpr uint32_t ShardsOf(Sql sql, size_t count) {
  return sql == Sql::kGetObjects ? static_cast<uint32_t>(count >> 16) : 1;
}

/// A statement that lists cells returns values of up to this many bytes with them; larger ones are fetched
/// one by one, so that the memory of a list is bounded.
inline constexpr size_t kInlineValueBytes = size_t{16} << 10;

/// An SQL expression: the server's clock, in ms.
inline constexpr std::string_view kNowMs = "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS UNSIGNED)";

/// The table of a mod shard's clock. No dataset can have this name.
inline constexpr char kClockTable[] = "kv$clock";
/// The slots of each mod shard's clock. Stored: never change it.
inline constexpr uint32_t kClockSlots = 64;
/// Each slot has a mark, in a row of its own after the rows of all slots: a random number, written by the
/// transaction that last advanced the slot. It tells whether a transaction was committed whose answer was
/// lost. Marks are small (kMaxMark), so that a program that takes one for a timestamp finds it long past.
/// Stored: never change it.
constexpr uint32_t MarkOf(uint32_t slot) { return kClockSlots + slot; }
inline constexpr uint64_t kMaxMark = (uint64_t{1} << 40) - 1;

/// Whether the statement changes data, so that it must not be sent again just because its answer was lost.
bool Writes(Sql sql);

/// Returns the text of a statement for one table.
///
/// count      how many times the part that `sql` repeats occurs.
/// returning  whether the server knows INSERT ... RETURNING, as MariaDB does. If not, the caller reads
///            what was assigned with kLastInsertId or kReadClock.
std::string Text(Sql sql, const Table& table, size_t count, bool returning);

}  // namespace kvstore::mysql
