#include "backends/mysql/statements.h"

#include <fmt/format.h>

#include <string_view>

#include "backends/mysql/move_schema.h"

namespace kvstore::mysql {
namespace {

/// `text`, `count` times, with `between` between.
std::string Repeat(std::string_view text, size_t count, std::string_view between) {
  std::string all(text);
  for (size_t i = 1; i < count; ++i) all.append(between).append(text);
  return all;
}

std::string Marks(size_t count) { return Repeat("?", count, ", "); }

}  // namespace

std::string Text(Sql sql, const Table& table, size_t count, bool returning) {
  const std::string name = table.QualifiedName();
  const std::string clock =
      fmt::format("{}.{}", Quote(DatabaseName(table.family->space, table.shard)), Quote(kClockTable));
  const std::string_view key_order = table.family->newest_last ? "ASC" : "DESC";
  const std::string cell =
      fmt::format("column_name, ts, LENGTH(value), IF(LENGTH(value) <= {}, value, NULL)", kInlineValueBytes);
  switch (sql) {
    // ---- objects ----
    case Sql::kCreateObject:  // data
      return fmt::format("INSERT INTO {} (data, ts) VALUES (?, {}){}", name, kNowMs,
                         returning ? " RETURNING local_id" : "");
    case Sql::kCreateObjectOnce:  // data, request
      return fmt::format("INSERT INTO {} (data, ts, request) VALUES (?, {}, ?){}", name, kNowMs,
                         returning ? " RETURNING local_id" : "");
    case Sql::kFindRequest:  // request
      return fmt::format("SELECT local_id FROM {} WHERE request = ?", name);
    case Sql::kLastInsertId:
      return "SELECT LAST_INSERT_ID()";
    case Sql::kGetObject:  // local_id
      return fmt::format("SELECT data, ts FROM {} WHERE local_id = ?", name);
    case Sql::kGetObjects: {  // (local_id ...) of each shard
      std::string text;
      for (uint32_t shard = table.shard; shard < table.shard + (count >> 16); ++shard) {
        text += fmt::format("{}SELECT {}, local_id, data, ts FROM {} WHERE local_id IN ({})",
                            text.empty() ? "" : " UNION ALL ", shard,
                            Table{table.family, shard}.QualifiedName(), Marks(count & 0xFFFF));
      }
      return text;
    }
    case Sql::kLockObject:  // local_id
      return fmt::format("SELECT data, ts, {} FROM {} WHERE local_id = ? FOR UPDATE", kNowMs, name);
    case Sql::kUpdateObject:  // data, ts, local_id
      return fmt::format("UPDATE {} SET data = ?, ts = ? WHERE local_id = ?", name);
    case Sql::kEraseObject:  // local_id
      return fmt::format("DELETE FROM {} WHERE local_id = ?", name);

    // ---- mappings ----
    case Sql::kAddMapping:  // from, to, sequence
      return fmt::format(
          "INSERT INTO {} (from_id, to_id, sequence) VALUES (?, ?, ?) "
          "ON DUPLICATE KEY UPDATE sequence = VALUES(sequence)",
          name);
    case Sql::kAddMappingNow:  // from, to
      return fmt::format(
          "INSERT INTO {} (from_id, to_id, sequence) VALUES (?, ?, {}) "
          "ON DUPLICATE KEY UPDATE sequence = VALUES(sequence)",
          name, kNowMs);
    case Sql::kRemoveMapping:  // from, to
      return fmt::format("DELETE FROM {} WHERE from_id = ? AND to_id = ?", name);
    // The index is named, so that the plan does not hang on the server's guesses.
    case Sql::kListAscending:  // from, limit, offset
      return fmt::format(
          "SELECT to_id, sequence FROM {} FORCE INDEX (by_sequence) WHERE from_id = ? "
          "ORDER BY sequence, to_id LIMIT ? OFFSET ?",
          name);
    case Sql::kListDescending:  // from, limit, offset
      return fmt::format(
          "SELECT to_id, sequence FROM {} FORCE INDEX (by_sequence) WHERE from_id = ? "
          "ORDER BY sequence DESC, to_id DESC LIMIT ? OFFSET ?",
          name);
    case Sql::kListAscendingAfter:  // from, sequence, sequence, to, limit
      return fmt::format(
          "SELECT to_id, sequence FROM {} FORCE INDEX (by_sequence) WHERE from_id = ? "
          "AND (sequence > ? OR (sequence = ? AND to_id > ?)) ORDER BY sequence, to_id LIMIT ?",
          name);
    case Sql::kListDescendingAfter:  // from, sequence, sequence, to, limit
      return fmt::format(
          "SELECT to_id, sequence FROM {} FORCE INDEX (by_sequence) WHERE from_id = ? "
          "AND (sequence < ? OR (sequence = ? AND to_id < ?)) ORDER BY sequence DESC, to_id DESC LIMIT ?",
          name);
    case Sql::kCountMapping:  // from
      return fmt::format("SELECT COUNT(*) FROM {} WHERE from_id = ?", name);

    // ---- rows ----
    // `ts + 0` keeps the condition out of the choice of a range, where it would not help: MariaDB 10.11
    // leaves out rows if ranges of two parts of a key are followed by one of a descending part
    // (tests/backends/mysql/assumptions_test.cc).
    case Sql::kRowCells:  // row, first column, lowest ts, limit
      return fmt::format(
          "SELECT {} FROM {} WHERE row_key = ? AND column_name >= ? AND ts + 0 >= ? "
          "ORDER BY column_name, ts {} LIMIT ?",
          cell, name, key_order);
    case Sql::kColumnCells: {  // (row, column, lowest ts, ts behind the highest, limit) ...
      const std::string one = fmt::format(
          "SELECT {} FROM {} WHERE row_key = ? AND column_name = ? AND ts >= ? AND ts < ? "
          "ORDER BY ts DESC LIMIT ?",
          cell, name);
      return count == 1 ? one : "(" + Repeat(one, count, ") UNION ALL (") + ")";
    }
    case Sql::kNextColumnCells:  // row, row, first column, lowest ts, ts behind the highest, limit
      return fmt::format(
          "SELECT {} FROM {} WHERE row_key = ? AND column_name = "
          "(SELECT MIN(column_name) FROM {} WHERE row_key = ? AND column_name >= ?) "
          "AND ts >= ? AND ts < ? ORDER BY ts DESC LIMIT ?",
          cell, name, name);
    case Sql::kNextColumn:  // row, first column
      return fmt::format("SELECT MIN(column_name) FROM {} WHERE row_key = ? AND column_name >= ?", name);
    case Sql::kCellValue:  // row, column, ts
      return fmt::format("SELECT value FROM {} WHERE row_key = ? AND column_name = ? AND ts = ?", name);
    case Sql::kRowsCells:  // row ..., lowest ts, limit
      return fmt::format(
          "SELECT row_key, {} FROM {} WHERE row_key IN ({}) AND ts + 0 >= ? "
          "ORDER BY row_key, column_name, ts {} LIMIT ?",
          cell, name, Marks(count), key_order);
    case Sql::kScanCells:  // first row, lowest ts, column ..., limit
      return fmt::format(
          "SELECT row_key, {} FROM {} WHERE row_key >= ? AND ts + 0 >= ?{} "
          "ORDER BY row_key, column_name, ts {} LIMIT ?",
          cell, name, count == 0 ? "" : fmt::format(" AND column_name IN ({})", Marks(count)), key_order);
    case Sql::kPutCells:  // (row, column, ts, value) ...
      return fmt::format(
          "INSERT INTO {} (row_key, column_name, ts, value) VALUES {} "
          "ON DUPLICATE KEY UPDATE value = VALUES(value)",
          name, Repeat("(?, ?, ?, ?)", count, ", "));
    case Sql::kNewestValue:  // row, column, lowest ts
      return fmt::format(
          "SELECT value FROM {} WHERE row_key = ? AND column_name = ? AND ts >= ? "
          "ORDER BY ts DESC LIMIT 1 FOR UPDATE",
          name);
    case Sql::kAdvanceClock:  // (slot, steps - 1) ..., the first one's mark's slot, mark, steps
      return fmt::format(
          "INSERT INTO {} (slot, last) VALUES {}, (?, ?) ON DUPLICATE KEY UPDATE last = IF(slot < {}, "
          "GREATEST(last + ?, VALUES(last)), VALUES(last)){}",
          clock, Repeat(fmt::format("(?, {} + ?)", kNowMs), count, ", "), kClockSlots,
          returning ? " RETURNING slot, last" : "");
    case Sql::kReadClock:  // slot ...
      return fmt::format("SELECT slot, last FROM {} WHERE slot IN ({})", clock, Marks(count));
    case Sql::kLockClock:  // slot, mark's slot
      return fmt::format("SELECT slot, last FROM {} WHERE slot IN (?, ?) ORDER BY slot FOR UPDATE", clock);
    case Sql::kDeleteRow:  // row
      return fmt::format("DELETE FROM {} WHERE row_key = ?", name);
    case Sql::kDeleteColumns:  // row, column ...
      return fmt::format("DELETE FROM {} WHERE row_key = ? AND column_name IN ({})", name, Marks(count));
    case Sql::kDeleteCell:  // row, column, ts
      return fmt::format("DELETE FROM {} WHERE row_key = ? AND column_name = ? AND ts = ?", name);

    // ---- migrations ----
    case Sql::kLockState:
      return fmt::format("SELECT epoch, state FROM {} WHERE one = 1 LOCK IN SHARE MODE", StateTable(table));
    case Sql::kColumnsCells:  // (row, column) ...
      return fmt::format(
          "SELECT row_key, {} FROM {} FORCE INDEX (PRIMARY) WHERE {} ORDER BY row_key, column_name, ts {}",
          cell, name, Repeat("(row_key = ? AND column_name = ?)", count, " OR "), key_order);
    case Sql::kRowColumnsCells:  // row, column ...
      return fmt::format(
          "SELECT row_key, {} FROM {} FORCE INDEX (PRIMARY) WHERE row_key = ? AND column_name IN ({}) ORDER "
          "BY "
          "row_key, column_name, ts {}",
          cell, name, Marks(count), key_order);
    case Sql::kUnitCellsFrom:  // row, row, column, last row, limit
      return fmt::format(
          "SELECT row_key, {} FROM {} FORCE INDEX (PRIMARY) WHERE (row_key > ? OR (row_key = ? AND "
          "column_name >= ?)) AND row_key <= ? ORDER BY row_key, column_name, ts {} LIMIT ?",
          cell, name, key_order);
    case Sql::kDeleteColumnsOf:  // (row, column) ...
      return fmt::format("DELETE FROM {} WHERE {}", name,
                         Repeat("(row_key = ? AND column_name = ?)", count, " OR "));
    case Sql::kObjects:  // local_id ...
      return fmt::format("SELECT local_id, data, ts FROM {} WHERE local_id IN ({})", name, Marks(count));
    case Sql::kObjectsFrom:  // local_id, limit
      return fmt::format("SELECT local_id, data, ts FROM {} WHERE local_id >= ? ORDER BY local_id LIMIT ?",
                         name);
    case Sql::kLastLocalId:
      return fmt::format("SELECT COALESCE(MAX(local_id), 0) FROM {}", name);
    case Sql::kPutObjects:  // (local_id, data, ts) ...
      return fmt::format(
          "INSERT INTO {} (local_id, data, ts) VALUES {} "
          "ON DUPLICATE KEY UPDATE data = VALUES(data), ts = VALUES(ts)",
          name, Repeat("(?, ?, ?)", count, ", "));
    case Sql::kDeleteObjects:  // local_id ...
      return fmt::format("DELETE FROM {} WHERE local_id IN ({})", name, Marks(count));
    case Sql::kMappings:  // (from, to) ...
      return fmt::format("SELECT from_id, to_id, sequence FROM {} FORCE INDEX (PRIMARY) WHERE {}", name,
                         Repeat("(from_id = ? AND to_id = ?)", count, " OR "));
    case Sql::kMappingsFrom:  // from, from, to, limit
      return fmt::format(
          "SELECT from_id, to_id, sequence FROM {} FORCE INDEX (PRIMARY) WHERE from_id > ? OR (from_id = ? "
          "AND "
          "to_id >= ?) ORDER BY from_id, to_id LIMIT ?",
          name);
    case Sql::kPutMappings:  // (from, to, sequence) ...
      return fmt::format(
          "INSERT INTO {} (from_id, to_id, sequence) VALUES {} "
          "ON DUPLICATE KEY UPDATE sequence = VALUES(sequence)",
          name, Repeat("(?, ?, ?)", count, ", "));
    case Sql::kDeleteMappings:  // (from, to) ...
      return fmt::format("DELETE FROM {} WHERE {}", name,
                         Repeat("(from_id = ? AND to_id = ?)", count, " OR "));
    case Sql::kReadDirtyPairs:  // limit
      return fmt::format("SELECT id, k1, k2 FROM {} ORDER BY id LIMIT ?", DirtyTable(table));
    case Sql::kReadDirtyIds:  // limit
      return fmt::format("SELECT id, k1 FROM {} ORDER BY id LIMIT ?", DirtyTable(table));
    case Sql::kRemoveDirty:  // id ...
      return fmt::format("DELETE FROM {} WHERE id IN ({})", DirtyTable(table), Marks(count));
    case Sql::kDirtyLag:  // entries that are counted at most
      return fmt::format(
          "SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM {0} LIMIT ?) AS counted), "
          "COALESCE((SELECT TIMESTAMPDIFF(MICROSECOND, at, NOW(3)) DIV 1000 FROM {0} ORDER BY id LIMIT 1), "
          "0)",
          DirtyTable(table));
    case Sql::kLastOfClock:
      return fmt::format("SELECT COALESCE(MAX(last), 0), {} FROM {} WHERE slot < {}", kNowMs, clock,
                         kClockSlots);

    // ---- purge ----
    case Sql::kPurgeRow:  // row, first column, limit
      return fmt::format(
          "SELECT row_key, column_name, ts FROM {} WHERE row_key = ? AND column_name >= ? "
          "ORDER BY column_name, ts {} LIMIT ?",
          name, key_order);
    case Sql::kPurgeRows:  // first row, limit
      return fmt::format(
          "SELECT row_key, column_name, ts FROM {} WHERE row_key >= ? "
          "ORDER BY row_key, column_name, ts {} LIMIT ?",
          name, key_order);
    case Sql::kPurgeExpired:  // row, column, lowest ts that stays, limit
      return fmt::format("DELETE FROM {} WHERE row_key = ? AND column_name = ? AND ts < ? LIMIT ?", name);
    case Sql::kPurgeKeep:  // row, column, cells that stay - 1
      return fmt::format(
          "SELECT ts FROM {} WHERE row_key = ? AND column_name = ? ORDER BY ts DESC LIMIT 1 OFFSET ? "
          "FOR UPDATE",
          name);
    case Sql::kPurgeSurplus:  // row, column, lowest ts that stays, limit
      return fmt::format("DELETE FROM {} WHERE row_key = ? AND column_name = ? AND ts < ? LIMIT ?", name);
  }
  return {};
}

}  // namespace kvstore::mysql
