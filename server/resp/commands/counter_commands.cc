#include <fmt/format.h>

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "backend_api/outcome.h"
#include "backend_api/row_rules.h"
#include "base/clock.h"
#include "kvstore_api/call_scope.h"
#include "server/resp/commands/errors.h"
#include "server/resp/commands/groups.h"
#include "server/resp/commands/key.h"
#include "server/resp/commands/numbers.h"
#include "server/resp/commands/rows.h"

/// Counters: values that are whole numbers as text. Each step is a put on the condition that the value is
/// still the one that was read, and is tried again if it is not, so none is lost and none happens twice.
namespace kvstore::server::resp {
namespace {

/// One of many clients that step one counter succeeds in each round.
constexpr int kMaxRounds = 10'000;
/// So many are made on a thread on which connections are served.
constexpr int kRoundsHere = 8;
/// A counter whose value lies so far in the future cannot be stepped: the store's timestamps are those of
/// now.
constexpr uint64_t kMaxAheadMs = 60'000;

/// The value of a counter.
struct Value {
  std::string text;  ///< As it is stored.
  int64_t number = 0;
  uint64_t timestamp = 0;
};

absl::Status FutureError() {
  return absl::FailedPreconditionError(
      "the value has a timestamp in the future, which hides what is put now; put a value with a later "
      "timestamp "
      "by KV.PUT");
}

/// Reads a counter; nothing if it has no value.
absl::StatusOr<std::optional<Value>> ReadValue(StoreCall& call, const ReadPlan& plan) {
  Row row;
  if (auto status = ReadAll(call.router, plan, call.here, *call.memory, row); !status.ok()) return status;
  if (row.items.empty()) return std::optional<Value>();
  Cell& cell = row.items.front().cells.front();
  const auto number = ParseSigned(cell.value);
  if (!number) return NotAnIntegerError();
  return std::optional<Value>(
      Value{.text = std::move(cell.value), .number = *number, .timestamp = cell.timestamp});
}

/// Adds to the value of a column, and appends the new one to the answer.
absl::Status Step(StoreCall& call, std::string_view key_text, std::string_view column, int64_t by,
                  Encoder& out) {
  auto key = ParseRowKey(key_text);
  if (!key.ok()) return key.status();
  ReadPlan plan{.dataset = key->dataset, .row = std::move(key->row), .options = {.limit = 1}};
  plan.options.columns.emplace().emplace_back(column);
  for (int round = 0; round < kMaxRounds; ++round) {
    if (auto status = CheckCall(); !status.ok()) return status;
    const auto value = ReadValue(call, plan);
    if (!value.ok()) return value.status();
    const int64_t before = *value ? (*value)->number : 0;
    int64_t after = 0;
    if (__builtin_add_overflow(before, by, &after)) {
      return absl::InvalidArgumentError("increment or decrement would overflow");
    }
    if (*value && (*value)->timestamp > WallClockMs() + kMaxAheadMs) return FutureError();
    const std::string text = std::to_string(after);
    const CellWrite cell{column, text, std::nullopt};
    WriteOptions options;
    options.condition = Condition{.column = column, .equals = std::nullopt};
    if (*value) options.condition->equals = (*value)->text;
    const auto put = call.router.PutRow(plan.dataset, plan.row, {&cell, 1}, options);
    if (put.ok()) {
      // A row that is put very often runs ahead of the clock, but never behind what the store gave before:
      // only a timestamp that a client gave hides the sum, which has been stored all the same.
      if (*value && put->timestamp <= (*value)->timestamp) return MarkInDoubt(FutureError());
      out.Integer(after);
      return absl::OkStatus();
    }
    if (!IsUnfulfilled(put.status())) return put.status();
    // Another client was faster.
    if (call.here && round == kRoundsHere) return TooLongHereError();
  }
  return WithWord(absl::AbortedError("too many clients change this value at once; nothing was done"), "BUSY");
}

absl::Status StepBy(StoreCall& call, std::string_view key, std::string_view column, std::string_view by,
                    bool down, Encoder& out) {
  const auto number = ParseSigned(by);
  if (!number || (down && *number == std::numeric_limits<int64_t>::min())) return NotAnIntegerError();
  return Step(call, key, column, down ? -*number : *number, out);
}

absl::Status Increment(StoreCall& call, Arguments arguments, Encoder& out) {
  return Step(call, arguments[1], "", 1, out);
}
absl::Status Decrement(StoreCall& call, Arguments arguments, Encoder& out) {
  return Step(call, arguments[1], "", -1, out);
}
absl::Status IncrementBy(StoreCall& call, Arguments arguments, Encoder& out) {
  return StepBy(call, arguments[1], "", arguments[2], /*down=*/false, out);
}
absl::Status DecrementBy(StoreCall& call, Arguments arguments, Encoder& out) {
  return StepBy(call, arguments[1], "", arguments[2], /*down=*/true, out);
}
absl::Status HashIncrementBy(StoreCall& call, Arguments arguments, Encoder& out) {
  return StepBy(call, arguments[1], arguments[2], arguments[3], /*down=*/false, out);
}

}  // namespace

std::span<const Command> CounterCommands() {
  static constexpr std::array kCommands = {
      OnKey("decr", 2, StoreCommand{.carry_out = &Decrement, .brief = true}, Operation::kPutRow, Shape::kRows,
            "string", "dataset:row", "Subtracts one from a value, exactly"),
      OnKey("decrby", 3, StoreCommand{.carry_out = &DecrementBy, .brief = true}, Operation::kPutRow,
            Shape::kRows, "string", "dataset:row number", "Subtracts from a value, exactly"),
      OnKey("hincrby", 4, StoreCommand{.carry_out = &HashIncrementBy, .brief = true}, Operation::kPutRow,
            Shape::kRows, "hash", "dataset:row column number", "Adds to the value of a column, exactly"),
      OnKey("incr", 2, StoreCommand{.carry_out = &Increment, .brief = true}, Operation::kPutRow, Shape::kRows,
            "string", "dataset:row", "Adds one to a value, exactly"),
      OnKey("incrby", 3, StoreCommand{.carry_out = &IncrementBy, .brief = true}, Operation::kPutRow,
            Shape::kRows, "string", "dataset:row number", "Adds to a value, exactly"),
  };
  return kCommands;
}

}  // namespace kvstore::server::resp
