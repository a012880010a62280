#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kvstore_api/call_scope.h"
#include "kvstore_api/limits.h"
#include "server/resp/commands/errors.h"
#include "server/resp/commands/glob.h"
#include "server/resp/commands/groups.h"
#include "server/resp/commands/key.h"
#include "server/resp/commands/numbers.h"
#include "server/resp/commands/rows.h"
#include "server/resp/commands/scan_options.h"
#include "server/resp/commands/words.h"

/// A row as a hash: its columns are the fields, with their newest values.
namespace kvstore::server::resp {
namespace {

/// With more columns a put looks for those that are given twice by a hash table.
constexpr size_t kFewColumns = 16;

// ---- plans ----

absl::Status PlanRow(Arguments arguments, ReadPlan& plan) {
  auto key = ParseRowKey(arguments[1]);
  if (!key.ok()) return key.status();
  plan.dataset = key->dataset;
  plan.row = std::move(key->row);
  plan.options.limit = kMaxAnswerElements;
  return absl::OkStatus();
}

/// Plans the read of the columns that are all arguments after the key.
absl::Status PlanColumns(Arguments arguments, ReadPlan& plan) {
  if (auto status = PlanRow(arguments, plan); !status.ok()) return status;
  const Arguments columns = arguments.subspan(2);
  if (columns.size() > kMaxAnswerElements) {
    return absl::InvalidArgumentError(
        fmt::format("{} columns were given, and the limit is {}; use several commands", columns.size(),
                    kMaxAnswerElements));
  }
  plan.options.columns.emplace(columns.begin(), columns.end());
  plan.options.limit = static_cast<uint32_t>(columns.size());
  return absl::OkStatus();
}

/// Adds a cell for each pair of column and value. If a column is given several times, its last value counts.
void AddCells(Arguments pairs, std::vector<CellWrite>& cells) {
  std::unordered_map<std::string_view, size_t> places;
  const bool many = pairs.size() / 2 > kFewColumns;
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const CellWrite cell{pairs[i], pairs[i + 1], std::nullopt};
    auto before = cells.end();
    if (many) {
      const auto [place, added] = places.emplace(cell.column, cells.size());
      if (!added) before = cells.begin() + static_cast<std::ptrdiff_t>(place->second);
    } else {
      before = std::find_if(cells.begin(), cells.end(),
                            [&](const CellWrite& other) { return other.column == cell.column; });
    }
    if (before == cells.end()) {
      cells.push_back(cell);
    } else {
      *before = cell;
    }
  }
}

absl::Status PlanSet(Arguments arguments, WritePlan& plan) {
  auto key = ParseRowKey(arguments[1]);
  if (!key.ok()) return key.status();
  plan.dataset = key->dataset;
  plan.row = std::move(key->row);
  if (arguments.size() % 2 != 0) {
    return absl::InvalidArgumentError(
        fmt::format("wrong number of arguments for '{}' command", LowerCase(arguments[0])));
  }
  AddCells(arguments.subspan(2), plan.cells);
  return absl::OkStatus();
}

absl::Status PlanSetAndCount(Arguments arguments, WritePlan& plan) {
  plan.counts_added = true;
  return PlanSet(arguments, plan);
}

absl::Status PlanSetIfAbsent(Arguments arguments, WritePlan& plan) {
  plan.options.condition = Condition{.column = arguments[2], .equals = std::nullopt};
  return PlanSet(arguments, plan);
}

// ---- answers ----

void AnswerAdded(const WritePlan& plan, const PutResult*, Encoder& out) {
  out.Integer(static_cast<int64_t>(plan.added));
}
void AnswerOk(const WritePlan&, const PutResult*, Encoder& out) { out.Ok(); }
void AnswerWhetherPut(const WritePlan&, const PutResult* put, Encoder& out) {
  out.Integer(put != nullptr ? 1 : 0);
}

void AppendNewest(const Row& row, std::string_view column, Encoder& out) {
  const std::string* const value = NewestOf(row, column);
  if (value == nullptr) return out.Null();
  out.Bulk(*value);
}

void AnswerGet(Arguments arguments, const Row& row, Encoder& out) { AppendNewest(row, arguments[2], out); }

void AnswerMultiGet(Arguments arguments, const Row& row, Encoder& out) {
  // A column that is named many times is read once, and its value would be sent as often as it is named.
  size_t bytes = 0;
  for (const std::string_view column : arguments.subspan(2)) {
    const std::string* const value = NewestOf(row, column);
    bytes += value == nullptr ? 0 : value->size();
  }
  if (bytes > kMaxAnswerBytes) return out.MarkTooLarge();
  out.Array(arguments.size() - 2);
  for (const std::string_view column : arguments.subspan(2)) AppendNewest(row, column, out);
}

void AnswerGetAll(Arguments, const Row& row, Encoder& out) {
  out.Map(row.items.size());
  for (const Item& item : row.items) {
    out.Bulk(item.column);
    out.Bulk(item.cells.front().value);
  }
}

void AnswerKeys(Arguments, const Row& row, Encoder& out) {
  out.Array(row.items.size());
  for (const Item& item : row.items) out.Bulk(item.column);
}

void AnswerValues(Arguments, const Row& row, Encoder& out) {
  out.Array(row.items.size());
  for (const Item& item : row.items) out.Bulk(item.cells.front().value);
}

void AnswerExists(Arguments arguments, const Row& row, Encoder& out) {
  out.Integer(NewestOf(row, arguments[2]) != nullptr ? 1 : 0);
}

void AnswerSize(Arguments arguments, const Row& row, Encoder& out) {
  const std::string* const value = NewestOf(row, arguments[2]);
  out.Integer(value == nullptr ? 0 : static_cast<int64_t>(value->size()));
}

// ---- others ----

absl::Status HashDelete(StoreCall& call, Arguments arguments, Encoder& out) {
  if (auto status = CheckCount(arguments.size() - 2, "columns"); !status.ok()) return status;
  ReadPlan plan;
  if (auto status = PlanColumns(arguments, plan); !status.ok()) return status;
  Row row;
  if (auto status = ReadAll(call.router, plan, call.here, *call.memory, row); !status.ok()) return status;
  if (!row.items.empty()) {
    DeleteOptions columns;
    columns.columns.emplace();
    for (Item& item : row.items) columns.columns->push_back(std::move(item.column));
    if (auto status = call.router.DeleteRow(plan.dataset, plan.row, columns); !status.ok()) return status;
  }
  out.Integer(static_cast<int64_t>(row.items.size()));
  return absl::OkStatus();
}

absl::Status HashLength(StoreCall& call, Arguments arguments, Encoder& out) {
  ReadPlan plan;
  if (auto status = PlanRow(arguments, plan); !status.ok()) return status;
  const auto count = CountIn(call.router, std::move(plan), Counted::kColumns, call.here);
  if (!count.ok()) return count.status();
  out.Integer(static_cast<int64_t>(*count));
  return absl::OkStatus();
}

/// Removes the columns that do not match. TooLongHereError if this takes long.
absl::Status KeepMatching(const StoreCall& call, std::string_view pattern, std::vector<Item>& items) {
  size_t steps = 0;
  std::vector<Item> kept;
  for (Item& item : items) {
    steps += MostSteps(pattern, item.column);
    if (call.here && steps > kMatchStepsHere) return TooLongHereError();
    if (auto status = CheckCall(); !status.ok()) return status;
    if (Matches(pattern, item.column)) kept.push_back(std::move(item));
  }
  items = std::move(kept);
  return absl::OkStatus();
}

absl::Status HashScan(StoreCall& call, Arguments arguments, Encoder& out) {
  ReadPlan plan;
  if (auto status = PlanRow(arguments, plan); !status.ok()) return status;
  const auto options = ReadScanOptions(arguments.subspan(2), {.no_values = true});
  if (!options.ok()) return options.status();
  const std::string what = fmt::format("hscan {}", RowKey(plan.dataset, plan.row));
  if (options->cursor != 0) {
    auto position = call.cursors.Find(call.caller, options->cursor, what);
    if (!position) return UnknownCursorError();
    plan.options.marker = *std::move(position);
  }
  plan.options.limit = options->count;
  plan.options.max_bytes = kDefaultScanBytes;
  auto page = call.router.GetRow(plan.dataset, plan.row, plan.options);
  if (!page.ok()) return page.status();
  if (auto status = KeepMatching(call, options->pattern, page->items); !status.ok()) return status;
  const uint64_t next =
      page->marker.empty() ? 0 : call.cursors.Add(call.caller, what, std::move(page->marker));
  out.Array(2);
  out.Bulk(std::to_string(next));
  out.Array(options->no_values ? page->items.size() : 2 * page->items.size());
  for (const Item& item : page->items) {
    out.Bulk(item.column);
    if (!options->no_values) out.Bulk(item.cells.front().value);
  }
  return absl::OkStatus();
}

}  // namespace

std::span<const Command> HashCommands() {
  static constexpr std::array kCommands = {
      OnKey("hdel", -3, StoreCommand{.carry_out = &HashDelete, .brief = true}, Operation::kDeleteRow,
            Shape::kRows, "hash", "dataset:row column [column ...]",
            "Deletes columns with all of their versions"),
      OnKey("hexists", 3, ReadCommand{.plan = &PlanColumns, .answer = &AnswerExists}, Operation::kGetRow,
            Shape::kRows, "hash", "dataset:row column", "Returns whether a column has a value"),
      OnKey("hget", 3, ReadCommand{.plan = &PlanColumns, .answer = &AnswerGet}, Operation::kGetRow,
            Shape::kRows, "hash", "dataset:row column", "Returns the newest value of a column"),
      OnKey("hgetall", 2, ReadCommand{.plan = &PlanRow, .answer = &AnswerGetAll}, Operation::kGetRow,
            Shape::kRows, "hash", "dataset:row", "Returns all columns of a row with their newest values"),
      OnKey("hkeys", 2, ReadCommand{.plan = &PlanRow, .answer = &AnswerKeys}, Operation::kGetRow,
            Shape::kRows, "hash", "dataset:row", "Returns the names of all columns of a row"),
      OnKey("hlen", 2, StoreCommand{.carry_out = &HashLength, .brief = true}, Operation::kGetRow,
            Shape::kRows, "hash", "dataset:row", "Returns how many columns a row has"),
      OnKey("hmget", -3, ReadCommand{.plan = &PlanColumns, .answer = &AnswerMultiGet}, Operation::kGetRow,
            Shape::kRows, "hash", "dataset:row column [column ...]", "Returns the newest values of columns"),
      OnKey("hmset", -4, WriteCommand{.plan = &PlanSet, .answer = &AnswerOk}, Operation::kPutRow,
            Shape::kRows, "hash", "dataset:row column value [column value ...]",
            "Puts values of columns of one row, all or none"),
      OnKey("hscan", -3, StoreCommand{.carry_out = &HashScan, .brief = true}, Operation::kGetRow,
            Shape::kRows, "hash", "dataset:row cursor [MATCH pattern] [COUNT count] [NOVALUES]",
            "Returns the columns of a row in parts"),
      OnKey("hset", -4, WriteCommand{.plan = &PlanSetAndCount, .answer = &AnswerAdded}, Operation::kPutRow,
            Shape::kRows, "hash", "dataset:row column value [column value ...]",
            "Puts values of columns of one row, all or none; returns how many columns are new"),
      OnKey("hsetnx", 4, WriteCommand{.plan = &PlanSetIfAbsent, .answer = &AnswerWhetherPut},
            Operation::kPutRow, Shape::kRows, "hash", "dataset:row column value",
            "Puts a value unless the column has one"),
      OnKey("hstrlen", 3, ReadCommand{.plan = &PlanColumns, .answer = &AnswerSize}, Operation::kGetRow,
            Shape::kRows, "hash", "dataset:row column",
            "Returns how many bytes the newest value of a column has"),
      OnKey("hvals", 2, ReadCommand{.plan = &PlanRow, .answer = &AnswerValues}, Operation::kGetRow,
            Shape::kRows, "hash", "dataset:row", "Returns the newest values of all columns of a row"),
  };
  return kCommands;
}

}  // namespace kvstore::server::resp
