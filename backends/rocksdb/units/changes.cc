#include "backends/rocksdb/units/changes.h"

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backend_api/unit_key.h"
#include "backends/rocksdb/engine/change_log.h"
#include "backends/rocksdb/rows/row_reader.h"
#include "backends/rocksdb/units/units.h"
#include "base/big_endian.h"
#include "base/clock.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::rocks {
namespace {

/// A follower is told only the newest cells of a column that has more bytes than this.
constexpr size_t kMaxColumnBytes = size_t{1} << 20;
constexpr size_t kPositionBytes = 8 + 8 + 4;

std::string PositionOf(const ChangePlace& place) {
  std::string position;
  AppendBigEndian(position, place.generation);
  AppendBigEndian(position, place.number);
  AppendBigEndian(position, place.unit);
  return position;
}

absl::StatusOr<ChangePlace> PlaceOf(std::string_view position) {
  if (position.size() != kPositionBytes) {
    return absl::OutOfRangeError(
        "from: this token was made while the dataset was on another backend, and its changes are not kept "
        "here");
  }
  return ChangePlace{.generation = ReadBigEndian<uint64_t>(position),
                     .number = ReadBigEndian<uint64_t>(position.substr(8)),
                     .unit = ReadBigEndian<uint32_t>(position.substr(16))};
}

/// Returns the log, which is not dropped as long as the caller holds the gate's mutex.
absl::StatusOr<std::shared_ptr<ChangeLog>> LogOf(const Family& family) {
  if (auto status = family.gate.CheckRead(); !status.ok()) return status;
  if (auto log = family.gate.open_change_log()) return log;
  if (family.settings->keep_changes_ms != 0) {
    return absl::ResourceExhaustedError(fmt::format(
        "dataset: the log of the changes of '{}' could not be opened, because the disk was full: free "
        "some space, and open the store again",
        family.settings->name));
  }
  return absl::FailedPreconditionError(fmt::format(
      "dataset: the changes of '{0}' are not kept; kv dataset alter {0} --keep-changes-ms 1d begins it",
      family.settings->name));
}

absl::StatusOr<std::shared_ptr<ChangeLog>> OpenLog(const Family& family) {
  const std::shared_lock lock(family.gate.mutex);
  return LogOf(family);
}

size_t BytesOf(const Unit& unit) {
  size_t bytes = unit.key.size();
  for (const Cell& cell : unit.cells) bytes += cell.value.size() + sizeof(Cell);
  return bytes;
}

/// Reads the visible cells of a column, the newest ones if they are many; `more` is set then.
absl::StatusOr<std::vector<Cell>> ReadColumn(const Family& family, const RowUnit& unit, bool& more) {
  std::string prefix;
  AppendEncoded(prefix, unit.row);
  const auto it = family.iterators->Acquire(prefix, EndOf(prefix));
  const std::vector<std::string> columns = {*unit.column};
  RowQuery query;
  query.columns = &columns;
  query.versions = std::numeric_limits<uint32_t>::max();
  query.limit = 1;
  query.max_bytes = kMaxColumnBytes;
  query.SetVisibility({}, *family.settings);
  std::vector<Item> items;
  std::optional<RowPosition> next;
  do {
    RowReader reader(*it);
    const std::optional<RowPosition> after = next;
    auto read = reader.Read(prefix, query, after ? &*after : nullptr, /*positioned=*/false, items);
    if (!read.ok()) return read.status();
    next = *std::move(read);
  } while (items.empty() && next);
  more = next && next->cells > 0;
  return items.empty() ? std::vector<Cell>() : std::move(items[0].cells);
}

/// Reads a unit that was touched, as it is now. One that stands for a whole row has no cells.
absl::StatusOr<UnitChange> ReadChange(Engine& engine, const Family& family, Shape shape,
                                      const TouchedUnit& touched) {
  UnitChange change{.position = PositionOf(touched.after),
                    .at_ms = touched.at_ms,
                    .unit = {.key = touched.key, .cells = {}}};
  if (shape == Shape::kRows) {
    const auto unit = ParseRowUnitKey(touched.key);
    if (!unit) return absl::DataLossError("the key of a change does not decode");
    if (!unit->column) return change;
    auto cells = ReadColumn(family, *unit, change.more);
    if (!cells.ok()) return cells.status();
    change.unit.cells = *std::move(cells);
    return change;
  }
  auto units = ReadUnits(engine, family, shape, {&touched.key, 1}, WallClockMs(), nullptr);
  if (!units.ok()) return units.status();
  change.unit = std::move((*units)[0]);
  return change;
}

/// A unit that was touched again, as it was when it was read for the page.
UnitChange SameAgain(const UnitChange& read, const TouchedUnit& touched) {
  UnitChange change = read;
  change.position = PositionOf(touched.after);
  change.at_ms = touched.at_ms;
  return change;
}

}  // namespace

absl::Status ApplyChangeLog(Engine& engine, Family& family) {
  if (engine.read_only()) return absl::OkStatus();
  Gate& gate = family.gate;
  const std::string name = ChangeLog::FamilyName(family.settings->name);
  const std::unique_lock lock(gate.mutex);
  const bool keeps = family.settings->keep_changes_ms != 0;
  const std::shared_ptr<ChangeLog> open = gate.open_change_log();
  if (keeps && open) return absl::OkStatus();
  // An end of the log that was cut short may have left its column family.
  if (!keeps && !open) return engine.DropAuxiliaryFamily(name, nullptr);
  std::shared_ptr<ChangeLog> log;
  if (keeps) {
    auto opened = ChangeLog::Open(engine, family.settings);
    if (!opened.ok()) return opened.status();
    log = *std::move(opened);
  }
  // Once all locks are held, no write is in flight that saw the log before. Writes are recorded for as long
  // as there is a log: one that could not be dropped must not have a gap when it is used again.
  const auto all = engine.locks().ExcludeAll();
  if (!keeps) {
    if (auto status = engine.DropAuxiliaryFamily(name, open->handle()); !status.ok()) return status;
  }
  gate.SetChangeLog(std::move(log));
  return absl::OkStatus();
}

void TrimChanges(const Family& family) {
  // The log is not dropped while this lock is held.
  const std::shared_lock lock(family.gate.mutex);
  if (!family.gate.CheckRead().ok()) return;
  // A log that cannot be trimmed now, on a full disk for example, is trimmed later.
  if (const auto log = family.gate.open_change_log()) log->Trim().IgnoreError();
}

absl::StatusOr<std::string> StartChanges(const Family& family, ChangesFrom from) {
  const auto log = OpenLog(family);
  if (!log.ok()) return log.status();
  return PositionOf(from == ChangesFrom::kBegin ? (*log)->Oldest() : (*log)->Newest());
}

absl::StatusOr<UnitChanges> ReadChanges(Engine& engine, const Family& family, Shape shape,
                                        std::string_view position, const ChangeLimits& limits) {
  const auto log = OpenLog(family);
  if (!log.ok()) return log.status();
  const auto from = PlaceOf(position);
  if (!from.ok()) return from.status();
  const auto page = (*log)->Read(*from, limits.changes, limits.bytes);
  if (!page.ok()) return page.status();

  UnitChanges result{
      .changes = {}, .position = PositionOf(page->next), .complete_until_ms = page->complete_until_ms};
  size_t bytes = 0;
  std::unordered_map<std::string_view, size_t> told;  // in result.changes, by the unit's key
  for (const TouchedUnit& touched : page->units) {
    if (auto status = CheckCall(); !status.ok()) return status;
    // All writes of the page had ended before the first unit was read, so one that comes again is no newer.
    const auto [again, is_new] = told.try_emplace(touched.key, result.changes.size());
    auto change = is_new ? ReadChange(engine, family, shape, touched)
                         : absl::StatusOr<UnitChange>(SameAgain(result.changes[again->second], touched));
    if (!change.ok()) return change.status();
    bytes += BytesOf(change->unit);
    if (bytes > limits.bytes && !result.changes.empty()) {
      result.position = result.changes.back().position;
      result.complete_until_ms = 0;
      break;
    }
    result.changes.push_back(*std::move(change));
  }
  // A read that was made while the dataset was dropped, or moved, says nothing.
  if (auto status = family.gate.CheckRead(); !status.ok()) return status;
  return result;
}

absl::Status SetConsumer(const Family& family, std::string_view name, std::string_view position) {
  const std::shared_lock lock(family.gate.mutex);
  const auto log = LogOf(family);
  if (!log.ok()) return log.status();
  const auto place = PlaceOf(position);
  if (!place.ok()) return place.status();
  return (*log)->SetConsumer(name, *place);
}

absl::StatusOr<std::vector<UnitConsumer>> ListConsumers(const Family& family) {
  const auto log = OpenLog(family);
  if (!log.ok()) return log.status();
  const auto consumers = (*log)->Consumers();
  if (!consumers.ok()) return consumers.status();
  std::vector<UnitConsumer> result;
  for (const ChangeLog::Consumer& consumer : *consumers) {
    result.push_back({.name = consumer.name,
                      .position = consumer.place ? PositionOf(*consumer.place) : std::string(),
                      .set_ms = consumer.set_ms,
                      .lag_ms = consumer.lag_ms});
  }
  return result;
}

absl::Status DropConsumer(const Family& family, std::string_view name) {
  const std::shared_lock lock(family.gate.mutex);
  const auto log = LogOf(family);
  if (!log.ok()) return log.status();
  return (*log)->DropConsumer(name);
}

}  // namespace kvstore::rocks
