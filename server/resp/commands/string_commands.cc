#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "backend_api/batch_bytes.h"
#include "backend_api/outcome.h"
#include "backend_api/scan_budget.h"
#include "kvstore_api/limits.h"
#include "server/resp/commands/errors.h"
#include "server/resp/commands/groups.h"
#include "server/resp/commands/key.h"
#include "server/resp/commands/rows.h"
#include "server/resp/commands/words.h"

/// Rows as strings: the value is the one of the column with the empty name.
namespace kvstore::server::resp {
namespace {

constexpr std::string_view kColumn;
absl::Status PlanGet(Arguments arguments, ReadPlan& plan) {
  auto key = ParseRowKey(arguments[1]);
  if (!key.ok()) return key.status();
  plan.dataset = key->dataset;
  plan.row = std::move(key->row);
  plan.options.columns.emplace().emplace_back(kColumn);
  plan.options.limit = 1;
  return absl::OkStatus();
}

absl::Status PlanPut(Arguments arguments, WritePlan& plan) {
  auto key = ParseRowKey(arguments[1]);
  if (!key.ok()) return key.status();
  plan.dataset = key->dataset;
  plan.row = std::move(key->row);
  plan.cells = {CellWrite{kColumn, arguments[2], std::nullopt}};
  return absl::OkStatus();
}

absl::Status PlanPutIfAbsent(Arguments arguments, WritePlan& plan) {
  plan.options.condition = Condition{.column = kColumn, .equals = std::nullopt};
  return PlanPut(arguments, plan);
}

absl::Status PlanSetString(Arguments arguments, WritePlan& plan) {
  for (const std::string_view option : arguments.subspan(3)) {
    if (Is(option, "nx")) {
      plan.options.condition = Condition{.column = kColumn, .equals = std::nullopt};
    } else if (Is(option, "ex") || Is(option, "px") || Is(option, "exat") || Is(option, "pxat") ||
               Is(option, "keepttl")) {
      return absl::UnimplementedError(fmt::format(
          "EX, PX, EXAT, PXAT and KEEPTTL are not supported: all cells of dataset '{0}' expire by "
          "its ttl_ms, which is changed for all of them with kv dataset alter {0} --ttl-ms MS",
          DatasetOf(arguments[1]).substr(0, kMaxDatasetNameBytes)));
    } else if (Is(option, "xx") || Is(option, "get")) {
      return absl::UnimplementedError(
          "XX and GET are not supported; use GET, and KV.PUT ... IFEQUALS to replace the value that was "
          "read");
    } else {
      return SyntaxError();
    }
  }
  return PlanPut(arguments, plan);
}

void AnswerString(Arguments, const Row& row, Encoder& out) {
  const std::string* const value = NewestOf(row, kColumn);
  if (value == nullptr) return out.Null();
  out.Bulk(*value);
}

void AnswerStringSize(Arguments, const Row& row, Encoder& out) {
  const std::string* const value = NewestOf(row, kColumn);
  out.Integer(value == nullptr ? 0 : static_cast<int64_t>(value->size()));
}

void AnswerSet(const WritePlan&, const PutResult* put, Encoder& out) {
  if (put == nullptr) return out.Null();
  out.Ok();
}

void AnswerWhetherSet(const WritePlan&, const PutResult* put, Encoder& out) {
  out.Integer(put != nullptr ? 1 : 0);
}

// ---- many keys ----

/// Returns the places of the keys by dataset; every `step`th argument is a key.
std::map<std::string_view, std::vector<size_t>> PlacesByDataset(Arguments keys, size_t step) {
  std::map<std::string_view, std::vector<size_t>> places;
  for (size_t i = 0; i < keys.size(); i += step) places[DatasetOf(keys[i])].push_back(i);
  return places;
}

/// Reads the strings of one dataset.
absl::Status GetStrings(StoreCall& call, std::string_view dataset, Arguments keys,
                        const std::vector<size_t>& places, std::vector<std::optional<std::string>>& values,
                        size_t& bytes) {
  std::vector<std::string> rows;
  std::vector<RowRead> reads;
  rows.reserve(places.size());
  for (const size_t place : places) {
    auto key = ParseRowKey(keys[place]);
    if (!key.ok()) return key.status();
    rows.push_back(std::move(key->row));
    ReadOptions options{.limit = 1};
    options.columns.emplace().emplace_back(kColumn);
    reads.push_back({.row = rows.back(), .options = std::move(options)});
  }
  const SmallBatches pieces(kReadBytes);
  size_t read_bytes = 0;
  for (size_t done = 0, together = kFirstTogether; done < places.size();) {
    const size_t before = done;
    const size_t end = std::min(places.size(), before + together);
    auto read = call.router.GetRows(dataset, std::span(reads).subspan(before, end - before));
    if (!read.ok()) return CheckShape(call.router, dataset, Shape::kRows, read.status());
    for (; done < end; ++done) {
      absl::StatusOr<Row>& row = (*read)[done - before];
      if (IsPaused(row.status()) && done > before) break;
      if (IsPaused(row.status())) return TooLargeAnswerError();
      if (!row.ok()) return row.status();
      if (row->items.empty()) continue;
      std::string& value = values[places[done]].emplace(std::move(row->items.front().cells.front().value));
      read_bytes += value.size();
      bytes += value.size();
      if (bytes > kMaxAnswerBytes) return TooLargeAnswerError();
      if (auto status = call.memory->Hold(2 * value.size()); !status.ok()) return status;
    }
    together = NextTogether(done, read_bytes);
  }
  return absl::OkStatus();
}

absl::Status MultiGet(StoreCall& call, Arguments arguments, Encoder& out) {
  const Arguments keys = arguments.subspan(1);
  if (auto status = CheckCount(keys.size(), "keys"); !status.ok()) return status;
  if (auto status = CheckKeys(call, keys, 1, Right::kRead); !status.ok()) return status;
  std::vector<std::optional<std::string>> values(keys.size());
  size_t bytes = 0;
  for (const auto& [dataset, places] : PlacesByDataset(keys, 1)) {
    if (auto status = GetStrings(call, dataset, keys, places, values, bytes); !status.ok()) return status;
  }
  out.Array(values.size());
  for (const auto& value : values) {
    if (value) {
      out.Bulk(*value);
    } else {
      out.Null();
    }
  }
  return absl::OkStatus();
}

/// Puts those strings of one dataset that were not put before.
absl::Status SetStrings(StoreCall& call, std::string_view dataset, Arguments pairs,
                        const std::vector<size_t>& places) {
  std::vector<size_t> left;
  std::vector<std::string> rows;
  std::vector<CellWrite> cells;
  std::vector<RowWrite> writes;
  rows.reserve(places.size());
  cells.reserve(places.size());
  for (const size_t place : places) {
    if (call.done[place]) continue;
    auto key = ParseRowKey(pairs[place]);
    if (!key.ok()) return key.status();
    left.push_back(place);
    rows.push_back(std::move(key->row));
    cells.push_back({kColumn, pairs[place + 1], std::nullopt});
    writes.push_back({.row = rows.back(), .cells = {&cells.back(), 1}, .options = {}});
  }
  if (left.empty()) return absl::OkStatus();
  const auto results = call.router.PutRows(dataset, writes);
  if (!results.ok()) return CheckShape(call.router, dataset, Shape::kRows, results.status());
  absl::Status first;
  for (size_t i = 0; i < left.size(); ++i) {
    const absl::Status& status = (*results)[i].status();
    call.done[left[i]] = status.ok();
    // An error for good counts more than one after which the rest is tried again.
    if (!status.ok() && (first.ok() || (IsMigrating(first) && !IsMigrating(status)))) first = status;
  }
  return first;
}

absl::Status MultiSet(StoreCall& call, Arguments arguments, Encoder& out) {
  const Arguments pairs = arguments.subspan(1);
  if (pairs.size() % 2 != 0)
    return absl::InvalidArgumentError("wrong number of arguments for 'mset' command");
  if (auto status = CheckCount(pairs.size() / 2, "keys"); !status.ok()) return status;
  if (auto status = CheckKeys(call, pairs, 2, Right::kWrite); !status.ok()) return status;
  // Nothing is put if a key is wrong.
  for (size_t i = 0; i < pairs.size(); i += 2) {
    if (const auto key = ParseRowKey(pairs[i]); !key.ok()) return key.status();
  }
  call.done.resize(pairs.size());
  for (const auto& [dataset, places] : PlacesByDataset(pairs, 2)) {
    if (auto status = SetStrings(call, dataset, pairs, places); !status.ok()) return status;
  }
  out.Ok();
  return absl::OkStatus();
}

absl::Status GetAndDelete(StoreCall& call, Arguments arguments, Encoder& out) {
  ReadPlan plan;
  if (auto status = PlanGet(arguments, plan); !status.ok()) return status;
  Row row;
  if (auto status = ReadAll(call.router, plan, call.here, *call.memory, row); !status.ok()) return status;
  if (!row.items.empty()) {
    DeleteOptions column;
    column.columns.emplace().emplace_back(kColumn);
    if (auto status = call.router.DeleteRow(plan.dataset, plan.row, column); !status.ok()) return status;
  }
  AnswerString(arguments, row, out);
  return absl::OkStatus();
}

}  // namespace

std::span<const Command> StringCommands() {
  static constexpr std::array kCommands = {
      OnKey("get", 2, ReadCommand{.plan = &PlanGet, .answer = &AnswerString}, Operation::kGetRow,
            Shape::kRows, "string", "dataset:row",
            "Returns the newest value of the column with the empty name"),
      OnKey("getdel", 2, StoreCommand{.carry_out = &GetAndDelete, .brief = true}, Operation::kDeleteRow,
            Shape::kRows, "string", "dataset:row", "Returns a value and then deletes it, in two steps"),
      Command{.name = "mget",
              .arity = -2,
              .handler = StoreCommand{.carry_out = &MultiGet, .brief = true},
              .operation = Operation::kGetRows,
              .dataset = DatasetIn::kKey,
              .shape = Shape::kRows,
              .keys = {1, -1, 1},
              .group = "string",
              .words = "dataset:row [dataset:row ...]",
              .summary = "Returns the values of several keys"},
      Command{.name = "mset",
              .arity = -3,
              .handler = StoreCommand{.carry_out = &MultiSet, .brief = true},
              .operation = Operation::kPutRows,
              .dataset = DatasetIn::kKey,
              .shape = Shape::kRows,
              .keys = {1, -1, 2},
              .group = "string",
              .words = "dataset:row value [dataset:row value ...]",
              .summary = "Puts the values of several keys, one by one"},
      OnKey("set", -3, WriteCommand{.plan = &PlanSetString, .answer = &AnswerSet}, Operation::kPutRow,
            Shape::kRows, "string", "dataset:row value [NX]", "Puts a value, with NX only if there is none"),
      OnKey("setnx", 3, WriteCommand{.plan = &PlanPutIfAbsent, .answer = &AnswerWhetherSet},
            Operation::kPutRow, Shape::kRows, "string", "dataset:row value", "Puts a value if there is none"),
      OnKey("strlen", 2, ReadCommand{.plan = &PlanGet, .answer = &AnswerStringSize}, Operation::kGetRow,
            Shape::kRows, "string", "dataset:row", "Returns how many bytes a value has"),
  };
  return kCommands;
}

}  // namespace kvstore::server::resp
