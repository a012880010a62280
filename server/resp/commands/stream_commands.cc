#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "kvstore_api/limits.h"
#include "server/resp/commands/errors.h"
#include "server/resp/commands/groups.h"
#include "server/resp/commands/key.h"
#include "server/resp/commands/numbers.h"
#include "server/resp/commands/rows.h"
#include "server/resp/commands/words.h"

/// A column of a row as a stream: its versions are the entries. An entry's ID is its timestamp and "-0", and
/// its one field is "v".
namespace kvstore::server::resp {
namespace {

constexpr std::string_view kField = "v";
constexpr uint64_t kMaxSequence = std::numeric_limits<uint64_t>::max();
/// The count of a command that has no COUNT.
constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
/// The most entries that one XDEL deletes.
constexpr size_t kMaxDeleted = 1'000;

absl::Status InvalidIdError() {
  return absl::InvalidArgumentError("Invalid stream ID specified as stream command argument");
}

std::string IdOf(uint64_t timestamp) { return fmt::format_int(timestamp).str() + "-0"; }

/// An ID as it is given: a timestamp, and a sequence unless that is missing.
struct GivenId {
  uint64_t timestamp = 0;
  std::optional<uint64_t> sequence;
};

std::optional<GivenId> ParseId(std::string_view text) {
  const size_t dash = text.find('-');
  const auto timestamp = ParseUnsigned(text.substr(0, dash));
  if (!timestamp || *timestamp > kMaxTimestamp) return std::nullopt;
  if (dash == std::string_view::npos) return GivenId{.timestamp = *timestamp, .sequence = std::nullopt};
  const auto sequence = ParseUnsigned(text.substr(dash + 1));
  if (!sequence) return std::nullopt;
  return GivenId{.timestamp = *timestamp, .sequence = sequence};
}

/// Returns the timestamp of an entry's ID.
absl::StatusOr<uint64_t> ParseEntryId(std::string_view text) {
  const auto id = ParseId(text);
  if (!id) return InvalidIdError();
  if (id->sequence.value_or(0) == 0) return id->timestamp;
  return absl::InvalidArgumentError(
      "an entry's ID is its timestamp in milliseconds and -0: write * or 1700000000000-0");
}

// ---- XADD ----

absl::Status PlanAdd(Arguments arguments, WritePlan& plan) {
  auto key = ParseColumnKey(arguments[1]);
  if (!key.ok()) return key.status();
  plan.dataset = key->dataset;
  plan.row = std::move(key->row);
  plan.column = *std::move(key->column);
  for (const std::string_view option : {"nomkstream", "maxlen", "minid"}) {
    if (!Is(arguments[2], option)) continue;
    return absl::UnimplementedError(fmt::format(
        "XADD: NOMKSTREAM, MAXLEN and MINID are not supported: a put always creates the column, and each "
        "column keeps as many versions as max_versions of dataset '{0}' allows; to change that for all its "
        "columns, type kv dataset alter {0} --max-versions COUNT",
        plan.dataset.substr(0, kMaxDatasetNameBytes)));
  }
  if (arguments.size() != 5 || !Is(arguments[3], kField)) {
    return absl::InvalidArgumentError("an entry has exactly one field, which is named v: XADD key * v VALUE");
  }
  CellWrite cell{plan.column, arguments[4], std::nullopt};
  if (arguments[2] != "*") {
    const auto timestamp = ParseEntryId(arguments[2]);
    if (!timestamp.ok()) return timestamp.status();
    cell.timestamp = *timestamp;
  }
  plan.cells = {cell};
  return absl::OkStatus();
}

void AnswerAdd(const WritePlan& plan, const PutResult* put, Encoder& out) {
  // A put without a condition that has not failed was made.
  const auto timestamp = plan.cells.front().timestamp;
  out.Bulk(IdOf(timestamp ? *timestamp : put->timestamp.value_or(0)));
}

// ---- ranges ----

/// Returns where a range of IDs begins, as a timestamp.
///
/// text  "-", an ID, or "(" and an ID, which is not part of the range then.
absl::StatusOr<uint64_t> ParseStart(std::string_view text) {
  if (text == "-") return uint64_t{0};
  if (text == "+") return kMaxTimestamp + 1;
  const bool exclusive = text.starts_with('(');
  const auto id = ParseId(text.substr(exclusive ? 1 : 0));
  if (!id) return InvalidIdError();
  // The only entry of this timestamp has the sequence 0.
  return id->timestamp + (exclusive || id->sequence.value_or(0) > 0 ? 1 : 0);
}

/// Returns where a range of IDs ends, as the timestamp after the last one.
absl::StatusOr<uint64_t> ParseEnd(std::string_view text) {
  if (text == "+") return kMaxTimestamp + 1;
  if (text == "-") return uint64_t{0};
  const bool exclusive = text.starts_with('(');
  const auto id = ParseId(text.substr(exclusive ? 1 : 0));
  if (!id) return InvalidIdError();
  // Without a sequence the ID stands for the last one of its timestamp.
  const bool included = !exclusive || id->sequence.value_or(kMaxSequence) > 0;
  return id->timestamp + (included ? 1 : 0);
}

/// The range and the number of entries that a command asks for.
struct RangeWanted {
  std::optional<uint64_t> count;
  TimeRange range;
};

/// Reads "start end [COUNT n]".
absl::StatusOr<RangeWanted> ReadRange(std::string_view start, std::string_view end, Arguments options) {
  RangeWanted wanted;
  const auto from = ParseStart(start);
  if (!from.ok()) return from.status();
  const auto to = ParseEnd(end);
  if (!to.ok()) return to.status();
  wanted.range = {.start = *from, .end = *to};
  if (options.empty()) return wanted;
  if (options.size() != 2 || !Is(options[0], "count")) return SyntaxError();
  const auto count = ParseSigned(options[1]);
  if (!count) return NotAnIntegerError();
  // As in Redis, a negative count asks for no entries.
  wanted.count = static_cast<uint64_t>(std::max<int64_t>(*count, 0));
  return wanted;
}

absl::Status PlanRange(std::string_view key_text, const absl::StatusOr<RangeWanted>& wanted,
                       bool newest_first, ReadPlan& plan) {
  auto key = ParseColumnKey(key_text);
  if (!key.ok()) return key.status();
  plan.dataset = key->dataset;
  plan.row = std::move(key->row);
  plan.options.columns.emplace().push_back(*std::move(key->column));
  plan.options.limit = 1;
  if (!wanted.ok()) return wanted.status();
  plan.options.time_range = wanted->range;
  // The store refuses an empty range, so another one is read instead, and EntriesOf ignores what it gives.
  if (wanted->range.start >= wanted->range.end)
    plan.options.time_range = {.start = kMaxTimestamp, .end = kMaxTimestamp + 1};
  // COUNT 0 is answered with null if the stream has entries, and with an empty array if it has none, so one
  // is read.
  if (wanted->count == 0u) plan.options.time_range = RangeWanted().range;
  const bool counts = newest_first || wanted->count == 0u;
  const uint64_t versions = counts ? wanted->count.value_or(kNoLimit) : kNoLimit;
  plan.options.versions =
      static_cast<uint32_t>(std::clamp<uint64_t>(versions, 1, std::numeric_limits<uint32_t>::max()));
  return absl::OkStatus();
}

absl::StatusOr<RangeWanted> RangeOf(Arguments arguments) {
  return ReadRange(arguments[2], arguments[3], arguments.subspan(4));
}
absl::StatusOr<RangeWanted> ReverseRangeOf(Arguments arguments) {
  return ReadRange(arguments[3], arguments[2], arguments.subspan(4));
}

absl::Status PlanForwards(Arguments arguments, ReadPlan& plan) {
  return PlanRange(arguments[1], RangeOf(arguments), /*newest_first=*/false, plan);
}
absl::Status PlanBackwards(Arguments arguments, ReadPlan& plan) {
  return PlanRange(arguments[1], ReverseRangeOf(arguments), /*newest_first=*/true, plan);
}

void AppendEntry(const Cell& cell, Encoder& out) {
  out.Array(2);
  out.Bulk(IdOf(cell.timestamp));
  out.Array(2);
  out.Bulk(kField);
  out.Bulk(cell.value);
}

/// Returns the entries that an answer has; nothing if none were wanted of a stream that has some.
std::optional<std::span<const Cell>> EntriesOf(const absl::StatusOr<RangeWanted>& wanted, const Row& row) {
  if (row.items.empty()) return std::span<const Cell>();
  if (wanted->count == 0u) return std::nullopt;
  if (wanted->range.start >= wanted->range.end) return std::span<const Cell>();
  return std::span<const Cell>(row.items.front().cells);
}

void AnswerForwards(Arguments arguments, const Row& row, Encoder& out) {
  const auto wanted = RangeOf(arguments);
  const auto entries = EntriesOf(wanted, row);
  if (!entries) return out.NullArray();
  const size_t count = std::min<uint64_t>(entries->size(), wanted->count.value_or(kNoLimit));
  out.Array(count);
  for (size_t i = 0; i < count; ++i) AppendEntry((*entries)[entries->size() - 1 - i], out);
}

void AnswerBackwards(Arguments arguments, const Row& row, Encoder& out) {
  const auto entries = EntriesOf(ReverseRangeOf(arguments), row);
  if (!entries) return out.NullArray();
  out.Array(entries->size());
  for (const Cell& cell : *entries) AppendEntry(cell, out);
}

// ---- others ----

absl::Status Length(StoreCall& call, Arguments arguments, Encoder& out) {
  ReadPlan plan;
  const absl::StatusOr<RangeWanted> all = RangeWanted();
  if (auto status = PlanRange(arguments[1], all, /*newest_first=*/false, plan); !status.ok()) return status;
  const auto count = CountIn(call.router, std::move(plan), Counted::kCells, call.here);
  if (!count.ok()) return count.status();
  out.Integer(static_cast<int64_t>(*count));
  return absl::OkStatus();
}

absl::Status DeleteEntries(StoreCall& call, Arguments arguments, Encoder& out) {
  const auto key = ParseColumnKey(arguments[1]);
  if (!key.ok()) return key.status();
  if (arguments.size() - 2 > kMaxDeleted) {
    return absl::InvalidArgumentError(
        fmt::format("XDEL: {} IDs were given, and the limit is {}; use several commands",
                    arguments.size() - 2, kMaxDeleted));
  }
  DeleteOptions cells;
  cells.cells.emplace();
  ReadOptions read{.limit = 1};
  read.columns.emplace().push_back(*key->column);
  for (const std::string_view text : arguments.subspan(2)) {
    const auto timestamp = ParseEntryId(text);
    if (!timestamp.ok()) return timestamp.status();
    const bool again = std::any_of(cells.cells->begin(), cells.cells->end(),
                                   [&](const CellName& cell) { return cell.timestamp == *timestamp; });
    if (again) continue;
    read.time_range = {.start = *timestamp, .end = *timestamp + 1};
    const auto row = call.router.GetRow(key->dataset, key->row, read);
    if (!row.ok()) return row.status();
    if (!row->items.empty()) cells.cells->push_back({.column = *key->column, .timestamp = *timestamp});
  }
  if (!cells.cells->empty()) {
    if (auto status = call.router.DeleteRow(key->dataset, key->row, cells); !status.ok()) return status;
  }
  out.Integer(static_cast<int64_t>(cells.cells->size()));
  return absl::OkStatus();
}

}  // namespace

std::span<const Command> StreamCommands() {
  static constexpr std::array kCommands = {
      OnKey("xadd", -5, WriteCommand{.plan = &PlanAdd, .answer = &AnswerAdd}, Operation::kPutRow,
            Shape::kRows, "stream", "dataset:row:column *|timestamp[-0] v value",
            "Puts a version of a column"),
      OnKey("xdel", -3, StoreCommand{.carry_out = &DeleteEntries}, Operation::kDeleteRow, Shape::kRows,
            "stream", "dataset:row:column timestamp-0 [timestamp-0 ...]",
            "Deletes versions of a column, where its dataset keeps all versions"),
      OnKey("xlen", 2, StoreCommand{.carry_out = &Length, .brief = true}, Operation::kGetRow, Shape::kRows,
            "stream", "dataset:row:column", "Returns how many versions a column has, by reading them"),
      OnKey("xrange", -4, ReadCommand{.plan = &PlanForwards, .answer = &AnswerForwards}, Operation::kGetRow,
            Shape::kRows, "stream", "dataset:row:column start end [COUNT count]",
            "Returns versions of a column, the oldest first"),
      OnKey("xrevrange", -4, ReadCommand{.plan = &PlanBackwards, .answer = &AnswerBackwards},
            Operation::kGetRow, Shape::kRows, "stream", "dataset:row:column end start [COUNT count]",
            "Returns versions of a column, the newest first"),
  };
  return kCommands;
}

}  // namespace kvstore::server::resp
