#include "backends/mysql/driver/statements.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace kvstore::mysql {
namespace {

enum class Does : uint8_t { kRead, kWrite };
using enum Does;

/// One statement. Braces in its text are replaced by what depends on the table or the count: see Text.
struct Statement {
  Sql sql;
  Does does;
  std::string_view text;
  std::string_view repeated = "?";  ///< {list} is this text, `count` times, ...
  std::string_view between = ", ";  ///< ... with this text between.
};

constexpr std::string_view kOr = " OR ";

/// All statements in the order of their numbers. The comment after a name lists the parameters.
constexpr std::array kStatements = std::to_array<Statement>({
    // ---- objects ----
    {Sql::kCreateObject, kWrite,  // data
     "INSERT INTO {table} (data, ts) VALUES (?, {now}){returning_id}"},
    {Sql::kCreateObjectOnce, kWrite,  // data, request
     "INSERT INTO {table} (data, ts, request) VALUES (?, {now}, ?){returning_id}"},
    {Sql::kFindRequest, kRead,  // request
     "SELECT local_id FROM {table} WHERE request = ?"},
    {Sql::kLastInsertId, kRead, "SELECT LAST_INSERT_ID()"},
    {Sql::kGetObject, kRead,  // local_id
     "SELECT data, ts FROM {table} WHERE local_id = ?"},
    {Sql::kGetObjects, kRead,  // (local_id ...) of each shard: TextOfGetObjects
     ""},
    {Sql::kLockObject, kRead,  // local_id
     "SELECT data, ts, {now} FROM {table} WHERE local_id = ? FOR UPDATE"},
    {Sql::kUpdateObject, kWrite,  // data, ts, local_id
     "UPDATE {table} SET data = ?, ts = ? WHERE local_id = ?"},
    {Sql::kEraseObject, kWrite,  // local_id
     "DELETE FROM {table} WHERE local_id = ?"},
    {Sql::kScanObjects, kRead,  // local_id, local_id after the last, limit
     "SELECT local_id, ts, LENGTH(data), IF(LENGTH(data) <= {inline_bytes}, data, NULL) FROM {table} "
     "FORCE INDEX (PRIMARY) WHERE local_id >= ? AND local_id < ? ORDER BY local_id LIMIT ?"},
    // ---- mappings ----
    {Sql::kAddMapping, kWrite,  // from, to, sequence
     "INSERT INTO {table} (from_id, to_id, sequence) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE "
     "sequence = VALUES(sequence)"},
    {Sql::kAddMappingNow, kWrite,  // from, to
     "INSERT INTO {table} (from_id, to_id, sequence) VALUES (?, ?, {now}) ON DUPLICATE KEY UPDATE "
     "sequence = VALUES(sequence)"},
    {Sql::kRemoveMapping, kWrite,  // from, to
     "DELETE FROM {table} WHERE from_id = ? AND to_id = ?"},
    // The index is named, so that the plan does not depend on the server's statistics.
    {Sql::kListAscending, kRead,  // from, limit, offset
     "SELECT to_id, sequence FROM {table} FORCE INDEX (by_sequence) WHERE from_id = ? ORDER BY "
     "sequence, to_id LIMIT ? OFFSET ?"},
    {Sql::kListDescending, kRead,  // from, limit, offset
     "SELECT to_id, sequence FROM {table} FORCE INDEX (by_sequence) WHERE from_id = ? ORDER BY "
     "sequence DESC, to_id DESC LIMIT ? OFFSET ?"},
    {Sql::kListAscendingAfter, kRead,  // from, sequence, sequence, to, limit, offset
     "SELECT to_id, sequence FROM {table} FORCE INDEX (by_sequence) WHERE from_id = ? AND (sequence "
     "> ? OR (sequence = ? AND to_id > ?)) ORDER BY sequence, to_id LIMIT ? OFFSET ?"},
    {Sql::kListDescendingAfter, kRead,  // from, sequence, sequence, to, limit, offset
     "SELECT to_id, sequence FROM {table} FORCE INDEX (by_sequence) WHERE from_id = ? AND (sequence "
     "< ? OR (sequence = ? AND to_id < ?)) ORDER BY sequence DESC, to_id DESC LIMIT ? OFFSET ?"},
    {Sql::kCountMapping, kRead,  // from, lowest to, entries that are counted at most
     "SELECT COUNT(*), MAX(to_id) FROM (SELECT to_id FROM {table} FORCE INDEX (PRIMARY) WHERE from_id "
     "= ? AND to_id >= ? ORDER BY to_id LIMIT ?) AS counted"},
    // ---- rows ----
    {Sql::kRowCells, kRead,  // row, first column, limit
     "SELECT {cell} FROM {table} WHERE row_key = ? AND column_name >= ? ORDER BY column_name, ts {order} "
     "LIMIT ?"},
    {Sql::kColumnCells,
     kRead,  // (row, column, lowest ts, ts after the highest, limit) ...: TextOfColumnCells
     ""},
    {Sql::kNextColumnCells, kRead,  // row, row, first column, lowest ts, ts after the highest, limit
     "SELECT {cell} FROM {table} WHERE row_key = ? AND column_name = (SELECT MIN(column_name) FROM "
     "{table} WHERE row_key = ? AND column_name >= ?) AND ts >= ? AND ts < ? ORDER BY ts DESC LIMIT "
     "?"},
    {Sql::kNextColumn, kRead,  // lowest ts, ts after the highest, row, first column, cells to look at
     "SELECT MIN(IF(ts >= ? AND ts < ?, column_name, NULL)), MIN(column_name), MAX(column_name), COUNT(*) "
     "FROM (SELECT column_name, ts FROM {table} FORCE INDEX (PRIMARY) WHERE row_key = ? AND column_name >= ? "
     "ORDER BY column_name, ts {order} LIMIT ?) AS next"},
    {Sql::kCellValue, kRead,  // row, column, ts
     "SELECT value FROM {table} WHERE row_key = ? AND column_name = ? AND ts = ?"},
    {Sql::kRowsCells, kRead,  // row ..., limit
     "SELECT row_key, {cell} FROM {table} WHERE row_key IN ({list}) ORDER BY row_key, column_name, ts "
     "{order} LIMIT ?"},
    // `ts + 0` keeps the optimizer from making a range of this condition, which would not help anyway:
    // MariaDB 10.11 loses rows if ranges of two parts of a key are followed by a range of a descending part
    // (tests/backends/mysql/assumptions_test.cc).
    {Sql::kScanCells, kRead,  // first row, last row, lowest ts, column ..., limit
     "SELECT row_key, {cell} FROM {table} WHERE row_key >= ? AND row_key <= ? AND ts + 0 >= "
     "?{of_columns} ORDER BY row_key, column_name, ts {order} LIMIT ?"},
    {Sql::kScanWindow, kRead,  // first row, last row, cells to pass
     "SELECT row_key FROM {table} FORCE INDEX (PRIMARY) WHERE row_key >= ? AND row_key <= ? ORDER BY "
     "row_key, column_name, ts {order} LIMIT 1 OFFSET ?"},
    {Sql::kScanLast, kRead,  // first row, last row
     "SELECT MAX(row_key) FROM {table} WHERE row_key >= ? AND row_key <= ?"},
    {Sql::kPutCells, kWrite,  // (row, column, ts, value) ...
     "INSERT INTO {table} (row_key, column_name, ts, value) VALUES {list} ON DUPLICATE KEY UPDATE "
     "value = VALUES(value)",
     "(?, ?, ?, ?)"},
    {Sql::kNewestValue, kRead,  // row, column, lowest ts
     "SELECT value FROM {table} WHERE row_key = ? AND column_name = ? AND ts >= ? ORDER BY ts DESC "
     "LIMIT 1 FOR UPDATE"},
    {Sql::kAdvanceClock, kWrite,  // (slot, steps - 1) ..., the first one's mark's slot, mark, steps
     "INSERT INTO {clock} (slot, last) VALUES {list}, (?, ?) ON DUPLICATE KEY UPDATE last = IF(slot "
     "< {slots}, GREATEST(last + ?, VALUES(last)), VALUES(last)){returning_clock}",
     "(?, {now} + ?)"},
    {Sql::kReadClock, kRead,  // slot ...
     "SELECT slot, last FROM {clock} WHERE slot IN ({list})"},
    {Sql::kLockClock, kRead,  // slot, mark's slot
     "SELECT slot, last FROM {clock} WHERE slot IN (?, ?) ORDER BY slot FOR UPDATE"},
    {Sql::kDeleteRow, kWrite,  // row
     "DELETE FROM {table} WHERE row_key = ?"},
    {Sql::kDeleteColumns, kWrite,  // row, column ...
     "DELETE FROM {table} WHERE row_key = ? AND column_name IN ({list})"},
    {Sql::kDeleteCell, kWrite,  // row, column, ts
     "DELETE FROM {table} WHERE row_key = ? AND column_name = ? AND ts = ?"},
    // ---- migrations ----
    {Sql::kLockState, kRead, "SELECT epoch, state FROM {state} WHERE one = 1 LOCK IN SHARE MODE"},
    {Sql::kColumnsCells, kRead,  // (row, column) ...
     "SELECT row_key, {cell} FROM {table} FORCE INDEX (PRIMARY) WHERE {list} ORDER BY row_key, "
     "column_name, ts {order}",
     "(row_key = ? AND column_name = ?)", kOr},
    {Sql::kRowColumnsCells, kRead,  // row, column ...
     "SELECT row_key, {cell} FROM {table} FORCE INDEX (PRIMARY) WHERE row_key = ? AND column_name "
     "IN ({list}) ORDER BY row_key, column_name, ts {order}"},
    {Sql::kUnitCellsFrom, kRead,  // row, row, column, last row, limit
     "SELECT row_key, {cell} FROM {table} FORCE INDEX (PRIMARY) WHERE (row_key > ? OR (row_key = ? "
     "AND column_name >= ?)) AND row_key <= ? ORDER BY row_key, column_name, ts {order} LIMIT ?"},
    {Sql::kDeleteColumnsOf, kWrite,  // (row, column) ...
     "DELETE FROM {table} WHERE {list}", "(row_key = ? AND column_name = ?)", kOr},
    {Sql::kObjects, kRead,  // local_id ...
     "SELECT local_id, data, ts FROM {table} WHERE local_id IN ({list})"},
    {Sql::kObjectsFrom, kRead,  // local_id, limit
     "SELECT local_id, data, ts FROM {table} WHERE local_id >= ? ORDER BY local_id LIMIT ?"},
    {Sql::kLastLocalId, kRead, "SELECT COALESCE(MAX(local_id), 0) FROM {table}"},
    {Sql::kPutObjects, kWrite,  // (local_id, data, ts) ...
     "INSERT INTO {table} (local_id, data, ts) VALUES {list} ON DUPLICATE KEY UPDATE data = "
     "VALUES(data), ts = VALUES(ts)",
     "(?, ?, ?)"},
    {Sql::kDeleteObjects, kWrite,  // local_id ...
     "DELETE FROM {table} WHERE local_id IN ({list})"},
    {Sql::kMappings, kRead,  // (from, to) ...
     "SELECT from_id, to_id, sequence FROM {table} FORCE INDEX (PRIMARY) WHERE {list}",
     "(from_id = ? AND to_id = ?)", kOr},
    {Sql::kMappingsFrom, kRead,  // from, from, to, limit
     "SELECT from_id, to_id, sequence FROM {table} FORCE INDEX (PRIMARY) WHERE from_id > ? OR "
     "(from_id = ? AND to_id >= ?) ORDER BY from_id, to_id LIMIT ?"},
    {Sql::kPutMappings, kWrite,  // (from, to, sequence) ...
     "INSERT INTO {table} (from_id, to_id, sequence) VALUES {list} ON DUPLICATE KEY UPDATE sequence "
     "= VALUES(sequence)",
     "(?, ?, ?)"},
    {Sql::kDeleteMappings, kWrite,  // (from, to) ...
     "DELETE FROM {table} WHERE {list}", "(from_id = ? AND to_id = ?)", kOr},
    {Sql::kReadDirtyPairs, kRead,  // limit
     "SELECT id, k1, k2 FROM {dirty} ORDER BY id LIMIT ?"},
    {Sql::kReadDirtyIds, kRead,  // limit
     "SELECT id, k1 FROM {dirty} ORDER BY id LIMIT ?"},
    {Sql::kRemoveDirty, kWrite,  // id ...
     "DELETE FROM {dirty} WHERE id IN ({list})"},
    {Sql::kDirtyLag, kRead,  // entries that are counted at most
     "SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM {dirty} LIMIT ?) AS counted), COALESCE((SELECT "
     "TIMESTAMPDIFF(MICROSECOND, at, NOW(3)) DIV 1000 FROM {dirty} ORDER BY id LIMIT 1), 0)"},
    {Sql::kLastOfClock, kRead, "SELECT COALESCE(MAX(last), 0), {now} FROM {clock} WHERE slot < {slots}"},
    // ---- purge ----
    {Sql::kPurgeRow, kRead,  // row, first column, limit
     "SELECT row_key, column_name, ts FROM {table} WHERE row_key = ? AND column_name >= ? ORDER BY "
     "column_name, ts {order} LIMIT ?"},
    {Sql::kPurgeRows, kRead,  // first row, limit
     "SELECT row_key, column_name, ts FROM {table} WHERE row_key >= ? ORDER BY row_key, "
     "column_name, ts {order} LIMIT ?"},
    {Sql::kPurgeExpired, kWrite,  // row, column, lowest ts that stays, limit
     "DELETE FROM {table} WHERE row_key = ? AND column_name = ? AND ts < ? LIMIT ?"},
    {Sql::kPurgeKeep, kRead,  // row, column, cells that stay - 1
     "SELECT ts FROM {table} WHERE row_key = ? AND column_name = ? ORDER BY ts DESC LIMIT 1 OFFSET "
     "? FOR UPDATE"},
    {Sql::kPurgeSurplus, kWrite,  // row, column, lowest ts that stays, limit
     "DELETE FROM {table} WHERE row_key = ? AND column_name = ? AND ts < ? LIMIT ?"},
});

constexpr bool AreInOrder() {
  for (size_t i = 0; i < kStatements.size(); ++i) {
    if (kStatements[i].sql != static_cast<Sql>(i)) return false;
  }
  return kStatements.back().sql == Sql::kPurgeSurplus;
}
static_assert(AreInOrder(), "each statement stands at its number, and none is missing");

const Statement& Find(Sql sql) { return kStatements.at(static_cast<size_t>(sql)); }

/// Returns `text` repeated `count` times, but at least once, with `between` in between.
std::string Repeat(std::string_view text, size_t count, std::string_view between) {
  std::string all(text);
  for (size_t i = 1; i < count; ++i) all.append(between).append(text);
  return all;
}

std::string Marks(size_t count) { return Repeat("?", count, ", "); }

/// Returns the columns in which statements list a cell: column, timestamp, size, and the value or, if that is
/// larger than kInlineValueBytes, NULL.
std::string Cell() {
  return fmt::format("column_name, ts, LENGTH(value), IF(LENGTH(value) <= {}, value, NULL)",
                     kInlineValueBytes);
}

std::string TextOfGetObjects(const Table& table, size_t count) {
  std::string text;
  for (uint32_t shard = table.shard; shard < table.shard + (count >> 16); ++shard) {
    text += fmt::format("{}SELECT {}, local_id, data, ts FROM {} WHERE local_id IN ({})",
                        text.empty() ? "" : " UNION ALL ", shard, Table{table.family, shard}.QualifiedName(),
                        Marks(count & 0xFFFF));
  }
  return text;
}

std::string TextOfColumnCells(const Table& table, size_t count) {
  const std::string one = fmt::format(
      "SELECT {} FROM {} WHERE row_key = ? AND column_name = ? AND ts >= ? AND ts < ? ORDER BY ts DESC LIMIT "
      "?",
      Cell(), table.QualifiedName());
  return count == 1 ? one : "(" + Repeat(one, count, ") UNION ALL (") + ")";
}

}  // namespace

bool Writes(Sql sql) { return Find(sql).does == kWrite; }

std::string Text(Sql sql, const Table& table, size_t count, bool returning) {
  if (sql == Sql::kGetObjects) return TextOfGetObjects(table, count);
  if (sql == Sql::kColumnCells) return TextOfColumnCells(table, count);
  const Statement& statement = Find(sql);
  const std::string one = fmt::format(fmt::runtime(statement.repeated), fmt::arg("now", kNowMs));
  return fmt::format(
      fmt::runtime(statement.text), fmt::arg("now", kNowMs), fmt::arg("table", table.QualifiedName()),
      fmt::arg("clock", Quote(DatabaseName(table.family->space, table.shard)) + "." + Quote(kClockTable)),
      fmt::arg("slots", kClockSlots), fmt::arg("state", StateTable(table)),
      fmt::arg("dirty", DirtyTable(table)), fmt::arg("cell", Cell()),
      fmt::arg("inline_bytes", kInlineValueBytes),
      fmt::arg("order", table.family->newest_last ? "ASC" : "DESC"),
      fmt::arg("list", Repeat(one, count, statement.between)),
      fmt::arg("of_columns", count == 0 ? "" : fmt::format(" AND column_name IN ({})", Marks(count))),
      fmt::arg("returning_id", returning ? " RETURNING local_id" : ""),
      fmt::arg("returning_clock", returning ? " RETURNING slot, last" : ""));
}

}  // namespace kvstore::mysql
