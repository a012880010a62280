#include "backends/mysql/units/units.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "backend_api/as_of.h"
#include "backend_api/unit_key.h"
#include "backends/mysql/rows/row_reader.h"
#include "base/big_endian.h"
#include "idgen/object_id.h"
#include "kvstore_api/limits.h"
#include "shardmap/mod_shard.h"

namespace kvstore::mysql {
namespace {

/// How many cells, objects or mappings a statement lists, and about how many bytes of values a list of
/// columns has.
constexpr uint64_t kListed = 4096;
constexpr uint64_t kListedBytes = uint64_t{8} << 20;
/// How many units a statement names, and how many cells, objects or mappings it puts, of about how many
/// bytes.
constexpr size_t kNamed = 64;
constexpr size_t kPut = 128;
constexpr size_t kPutBytes = size_t{4} << 20;

uint64_t First(std::string_view key) { return ReadBigEndian<uint64_t>(key); }
uint64_t Second(std::string_view key) { return ReadBigEndian<uint64_t>(key.substr(sizeof(uint64_t))); }

std::string Number(uint64_t value) {
  std::string bytes;
  AppendBigEndian(bytes, value);
  return bytes;
}

/// Returns how many keys a statement has room for that names `count`: a power of two up to kNamed, so that
/// few statements are prepared.
size_t SizeFor(size_t count) { return std::min(std::bit_ceil(count), kNamed); }

uint64_t LocalOf(uint64_t id) { return id & ObjectId::kMaxLocal; }

uint64_t IdOf(const Table& table, const UnitKind& kind, uint64_t local) {
  return ObjectId::ValueOf(table.shard, kind.type, local);
}

/// Calls `work(part, size)` with up to kNamed places at a time. `size` is how many keys the statement has
/// room for; the caller repeats the last key in the rest of it.
template <typename Work>
void InParts(std::span<const size_t> places, const Work& work) {
  while (!places.empty()) {
    const auto part = places.first(std::min(places.size(), kNamed));
    work(part, SizeFor(part.size()));
    places = places.subspan(part.size());
  }
}

// ---- rows ----

/// Builds the units of columns from cells that come in order.
class Columns {
 public:
  Columns(Connection& connection, const Table& table, const Visible& visible)
      : connection_(connection), table_(table), visible_(visible) {}

  /// Adds the next cell, which the current row of the result has. Returns whether it begins another column.
  bool Add(const Rows& rows) {
    std::string row = rows.Bytes(1);
    ListedCell cell = ReadCell(rows, 2);
    const bool begins = units_.empty() || row != row_ || cell.column != column_;
    if (begins) {
      row_ = std::move(row);
      column_ = cell.column;
      units_.push_back({RowUnitKey(row_, column_), {}});
    }
    Unit& unit = units_.back();
    bytes_ += cell.bytes;
    if (begins) begin_bytes_.push_back(bytes_ - cell.bytes);
    if (!cell.value) large_.push_back({units_.size() - 1, unit.cells.size(), row_, column_});
    unit.cells.push_back({cell.timestamp, cell.value ? *std::move(cell.value) : ""});
    return begins;
  }
  /// Removes the last column.
  void DropLast() {
    units_.pop_back();
    bytes_ = begin_bytes_.back();
    begin_bytes_.pop_back();
    while (!large_.empty() && large_.back().unit == units_.size()) large_.pop_back();
  }
  size_t size() const { return units_.size(); }
  uint64_t bytes() const { return bytes_; }
  const std::string& last_key() const { return units_.back().key; }
  const std::string& row() const { return row_; }
  const std::string& column() const { return column_; }

  /// Returns the columns with their visible cells. Large values are fetched now, so the result of the list
  /// must have been read to its end.
  std::vector<Unit> Finish() {
    for (const Large& large : large_) {
      Cell& cell = units_[large.unit].cells[large.cell];
      Rows value = connection_.Prepare(Sql::kCellValue, table_)
                       .Bind(large.row)
                       .Bind(large.column)
                       .Bind(cell.timestamp)
                       .Query();
      // A cell that is missing by now was deleted meanwhile, and so the dirty log has the unit.
      if (value.Next()) {
        cell.value = value.Bytes(1);
      } else {
        cell.timestamp = kGone;
      }
    }
    for (Unit& unit : units_) {
      std::erase_if(unit.cells, [&](const Cell& cell) {
        return cell.timestamp == kGone || cell.timestamp < visible_.oldest;
      });
      if (table_.family->newest_last) std::reverse(unit.cells.begin(), unit.cells.end());
      if (unit.cells.size() > visible_.max_versions) unit.cells.resize(visible_.max_versions);
    }
    return std::move(units_);
  }

 private:
  static constexpr uint64_t kGone = UINT64_MAX;
  struct Large {
    size_t unit;
    size_t cell;
    std::string row;
    std::string column;
  };

  Connection& connection_;
  const Table& table_;
  const Visible& visible_;
  std::vector<Unit> units_;
  std::vector<Large> large_;
  std::vector<uint64_t> begin_bytes_;  // for each unit: bytes_ before it
  uint64_t bytes_ = 0;                 // of all values, including those that are not fetched yet
  std::string row_;
  std::string column_;
};

/// Calls `work(part, one_row)` with up to kNamed keys at a time, either columns of one row, or single columns
/// of different rows. If a list of pairs of row and column named several columns of one row, the server would
/// search all of that row for them, however wide it is.
template <typename Work>
void InParts(std::span<const RowUnit> keys, const Work& work) {
  std::vector<RowUnit> others;
  const auto flush = [&] {
    if (!others.empty()) work(std::span<const RowUnit>(others), false);
    others.clear();
  };
  for (size_t at = 0; at < keys.size();) {
    size_t end = at + 1;
    while (end < keys.size() && end - at < kNamed && keys[end].row == keys[at].row) ++end;
    if (end - at > 1) {
      work(keys.subspan(at, end - at), true);
    } else {
      others.push_back(keys[at]);
      if (others.size() == kNamed) flush();
    }
    at = end;
  }
  flush();
}

/// Binds up to kNamed keys, and the last one again for the rest of the statement's room.
void BindKeys(Call& call, std::span<const RowUnit> keys, bool one_row) {
  if (one_row) call.Bind(keys[0].row);
  for (size_t i = 0; i < SizeFor(keys.size()); ++i) {
    const RowUnit& key = keys[std::min(i, keys.size() - 1)];
    if (!one_row) call.Bind(key.row);
    call.Bind(*key.column);
  }
}

/// Returns some columns, with all their visible cells.
std::vector<Unit> ReadColumns(Connection& connection, const Table& table, const Visible& visible,
                              std::span<const RowUnit> keys) {
  Columns columns(connection, table, visible);
  InParts(keys, [&](std::span<const RowUnit> part, bool one_row) {
    Call call =
        connection.Prepare(one_row ? Sql::kRowColumnsCells : Sql::kColumnsCells, table, SizeFor(part.size()));
    BindKeys(call, part, one_row);
    Rows rows = call.Query();
    while (rows.Next()) columns.Add(rows);
  });
  return columns.Finish();
}

/// ListUnits for rows.
UnitList ListColumns(Connection& connection, const Table& table, const Visible& visible,
                     std::string_view from, std::string_view end) {
  // Without an end, the list goes on to the highest row key that there can be.
  RowUnit behind{std::string(kMaxRowKeyBytes, '\xff'), std::nullopt};
  if (auto parsed = ParseRowUnitKey(end)) behind = *std::move(parsed);
  RowUnit first;
  if (!from.empty()) {
    if (auto parsed = ParseRowUnitKey(from)) first = *std::move(parsed);
  }
  UnitList list;
  Columns columns(connection, table, visible);
  uint64_t listed = 0;
  {
    Rows rows = connection.Prepare(Sql::kUnitCellsFrom, table)
                    .Bind(first.row)
                    .Bind(first.row)
                    .Bind(first.column.value_or(""))
                    .Bind(behind.row)
                    .Bind(kListed)
                    .Query();
    for (; rows.Next(); ++listed) columns.Add(rows);
  }
  if (listed == kListed) {
    // The last column may have more cells. It comes with the next list; or, if it is alone in this one, it is
    // read whole now.
    const RowUnit last{columns.row(), columns.column()};
    if (columns.size() > 1) {
      columns.DropLast();
      list.next = RowUnitKey(last.row, *last.column);
    } else {
      list.units = ReadColumns(connection, table, visible, {&last, 1});
      list.next = RowUnitKey(last.row, Behind(*last.column));
      columns.DropLast();
    }
  }
  // Finish fetches large values, so columns are dropped until the rest fits into memory.
  while (columns.size() > 1 && columns.bytes() > kListedBytes) {
    list.next = columns.last_key();
    columns.DropLast();
  }
  for (Unit& unit : columns.Finish()) list.units.push_back(std::move(unit));
  std::erase_if(list.units, [](const Unit& unit) { return unit.cells.empty(); });
  return list;
}

struct StoredCell {
  std::string_view row;
  std::string_view column;
  const Cell* cell;
};

/// Puts cells, several with a statement.
void PutCells(Connection& connection, const Table& table, std::span<const StoredCell> cells) {
  while (!cells.empty()) {
    size_t count = 0;
    for (size_t bytes = 0; count < std::min(cells.size(), kPut) && bytes < kPutBytes; ++count) {
      bytes += cells[count].cell->value.size();
    }
    // The number of cells is a power of two, so that few statements are prepared.
    if (count < kPut) count = std::bit_floor(count);
    Call call = connection.Prepare(Sql::kPutCells, table, count);
    for (const StoredCell& cell : cells.first(count)) {
      call.Bind(cell.row).Bind(cell.column).Bind(cell.cell->timestamp).Bind(cell.cell->value);
    }
    call.Execute();
    cells = cells.subspan(count);
  }
}

}  // namespace

// ---- what is visible, and where ----

Visible::Visible(const Dataset& dataset, const Connection& connection, uint64_t as_of)
    : max_versions(dataset.max_versions) {
  const uint64_t ttl = dataset.ttl_ms;
  as_of = NoLater(as_of, connection.ServerMs());
  if (ttl != 0 && as_of > ttl) oldest = as_of - ttl;
  if (max_versions == 0) max_versions = UINT64_MAX;
}

absl::StatusOr<uint32_t> ShardOfUnit(const UnitKind& kind, std::string_view key, uint32_t mod_shards) {
  if (kind.shape == Shape::kRows) {
    const auto parsed = ParseRowUnitKey(key);
    if (!parsed) return absl::InvalidArgumentError("unit: the key is not one of a row's column");
    return ModShard(parsed->row, mod_shards);
  }
  if (!IsUnitKey(kind.shape, key)) return absl::InvalidArgumentError("unit: the key is of another shape");
  return ObjectId::ShardOf(First(key));
}

// ---- reading ----

void ReadUnits(Connection& connection, const Table& table, const UnitKind& kind, const Visible& visible,
               std::span<const std::string> keys, std::span<const size_t> places, std::vector<Unit>& units) {
  std::unordered_map<std::string_view, size_t> by_key;
  for (const size_t place : places) {
    units[place] = {keys[place], {}};
    by_key.emplace(keys[place], place);
  }
  const auto take = [&](Unit unit) {
    if (const auto found = by_key.find(unit.key); found != by_key.end()) {
      units[found->second].cells = std::move(unit.cells);
    }
  };
  InParts(places, [&](std::span<const size_t> part, size_t size) {
    const auto key = [&](size_t i) -> const std::string& { return keys[part[std::min(i, part.size() - 1)]]; };
    switch (kind.shape) {
      case Shape::kRows: {
        std::vector<RowUnit> columns;
        for (const size_t place : part) columns.push_back(*ParseRowUnitKey(keys[place]));
        for (Unit& unit : ReadColumns(connection, table, visible, columns)) take(std::move(unit));
        return;
      }
      case Shape::kObjects: {
        Call call = connection.Prepare(Sql::kObjects, table, size);
        for (size_t i = 0; i < size; ++i) call.Bind(LocalOf(First(key(i))));
        for (Rows rows = call.Query(); rows.Next();) {
          take({Number(IdOf(table, kind, rows.Uint(1))), {{rows.Uint(3), rows.Bytes(2)}}});
        }
        return;
      }
      case Shape::kMappings: {
        Call call = connection.Prepare(Sql::kMappings, table, size);
        for (size_t i = 0; i < size; ++i) call.Bind(First(key(i))).Bind(Second(key(i)));
        for (Rows rows = call.Query(); rows.Next();) {
          take({MappingUnitKey(rows.Uint(1), rows.Uint(2)), {{0, Number(rows.Uint(3))}}});
        }
        return;
      }
    }
  });
}

UnitList ListUnits(Connection& connection, const Table& table, const UnitKind& kind, const Visible& visible,
                   std::string_view from, std::string_view end) {
  if (kind.shape == Shape::kRows) return ListColumns(connection, table, visible, from, end);
  UnitList list;
  uint64_t listed = 0;
  const uint64_t first = from.size() >= sizeof(uint64_t) ? First(from) : 0;
  if (kind.shape == Shape::kObjects) {
    const uint64_t least = IdOf(table, kind, 0);
    if (first > IdOf(table, kind, ObjectId::kMaxLocal)) return list;
    Rows rows = connection.Prepare(Sql::kObjectsFrom, table)
                    .Bind(first > least ? LocalOf(first) : 0)
                    .Bind(kListed)
                    .Query();
    for (; rows.Next(); ++listed) {
      list.units.push_back({Number(IdOf(table, kind, rows.Uint(1))), {{rows.Uint(3), rows.Bytes(2)}}});
    }
    if (listed == kListed) list.next = Number(First(list.units.back().key) + 1);
    return list;
  }
  const uint64_t to = from.size() >= 2 * sizeof(uint64_t) ? Second(from) : 0;
  Rows rows =
      connection.Prepare(Sql::kMappingsFrom, table).Bind(first).Bind(first).Bind(to).Bind(kListed).Query();
  for (; rows.Next(); ++listed) {
    list.units.push_back({MappingUnitKey(rows.Uint(1), rows.Uint(2)), {{0, Number(rows.Uint(3))}}});
  }
  if (listed == kListed) {
    const std::string& last = list.units.back().key;
    list.next = Second(last) == UINT64_MAX ? MappingUnitKey(First(last) + 1, 0)
                                           : MappingUnitKey(First(last), Second(last) + 1);
  }
  return list;
}

// ---- writing ----

void WriteUnits(Connection& connection, const Table& table, const UnitKind& kind, std::span<const Unit> units,
                std::span<const size_t> places, bool fresh) {
  if (kind.shape == Shape::kRows) {
    std::vector<RowUnit> keys;
    keys.reserve(places.size());
    for (const size_t place : places) keys.push_back(*ParseRowUnitKey(units[place].key));
    if (!fresh) {
      InParts(keys, [&](std::span<const RowUnit> part, bool one_row) {
        Call call = connection.Prepare(one_row ? Sql::kDeleteColumns : Sql::kDeleteColumnsOf, table,
                                       SizeFor(part.size()));
        BindKeys(call, part, one_row);
        call.Execute();
      });
    }
    std::vector<StoredCell> cells;
    for (size_t i = 0; i < places.size(); ++i) {
      for (const Cell& cell : units[places[i]].cells) cells.push_back({keys[i].row, *keys[i].column, &cell});
    }
    PutCells(connection, table, cells);
    return;
  }
  std::vector<size_t> gone;
  std::vector<size_t> there;
  for (const size_t place : places) (units[place].cells.empty() ? gone : there).push_back(place);
  const bool objects = kind.shape == Shape::kObjects;
  InParts(gone, [&](std::span<const size_t> part, size_t size) {
    Call call = connection.Prepare(objects ? Sql::kDeleteObjects : Sql::kDeleteMappings, table, size);
    for (size_t i = 0; i < size; ++i) {
      const std::string& key = units[part[std::min(i, part.size() - 1)]].key;
      objects ? call.Bind(LocalOf(First(key))) : call.Bind(First(key)).Bind(Second(key));
    }
    call.Execute();
  });
  for (std::span<const size_t> left(there); !left.empty();) {
    size_t count = 0;
    for (size_t bytes = 0; count < std::min(left.size(), kPut) && bytes < kPutBytes; ++count) {
      bytes += units[left[count]].cells[0].value.size();
    }
    if (count < kPut) count = std::bit_floor(count);
    Call call = connection.Prepare(objects ? Sql::kPutObjects : Sql::kPutMappings, table, count);
    for (const size_t place : left.first(count)) {
      const Unit& unit = units[place];
      const Cell& cell = unit.cells[0];
      if (objects) {
        call.Bind(LocalOf(First(unit.key))).Bind(cell.value).Bind(cell.timestamp);
      } else {
        call.Bind(First(unit.key)).Bind(Second(unit.key)).Bind(First(cell.value));
      }
    }
    call.Execute();
    left = left.subspan(count);
  }
}

// ---- the dirty log ----

std::vector<DirtyEntry> ReadDirty(Connection& connection, const Table& table, const UnitKind& kind,
                                  size_t limit) {
  std::vector<DirtyEntry> entries;
  const bool ids = kind.shape == Shape::kObjects;
  Rows rows = connection.Prepare(ids ? Sql::kReadDirtyIds : Sql::kReadDirtyPairs, table).Bind(limit).Query();
  while (rows.Next()) {
    DirtyEntry entry{.log = table.shard, .id = rows.Uint(1)};
    switch (kind.shape) {
      case Shape::kRows:
        entry.key = RowUnitKey(rows.Bytes(2), rows.Bytes(3));
        break;
      case Shape::kObjects:
        entry.key = Number(IdOf(table, kind, rows.Uint(2)));
        break;
      case Shape::kMappings:
        entry.key = MappingUnitKey(rows.Uint(2), rows.Uint(3));
        break;
    }
    entries.push_back(std::move(entry));
  }
  if (!entries.empty() && table.family->newest_last) {
    // The log is on InnoDB and the table is not, so a commit may become visible in the log before it does in
    // the table. A snapshot of all engines waits for commits in flight: what is read after it has the rows of
    // these entries (tests/backends/mysql/assumptions_test.cc).
    const Transaction both(connection, Transaction::Kind::kSnapshot);
  }
  return entries;
}

void RemoveDirty(Connection& connection, const Table& table, std::span<const uint64_t> ids) {
  while (!ids.empty()) {
    const auto part = ids.first(std::min(ids.size(), kNamed));
    const size_t size = SizeFor(part.size());
    Call call = connection.Prepare(Sql::kRemoveDirty, table, size);
    for (size_t i = 0; i < size; ++i) call.Bind(part[std::min(i, part.size() - 1)]);
    call.Execute();
    ids = ids.subspan(part.size());
  }
}

}  // namespace kvstore::mysql
