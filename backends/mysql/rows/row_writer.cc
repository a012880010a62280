#include "backends/mysql/rows/row_writer.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "backend_api/outcome.h"
#include "backend_api/row_rules.h"
#include "base/hash.h"
#include "base/random_number.h"
#include "kvstore_api/limits.h"

namespace kvstore::mysql {
namespace {

/// How many cells one statement puts, or how many columns it deletes.
constexpr size_t kStatementCells = 64;
/// Up to about how many rows and bytes the puts of a batch are committed together.
constexpr size_t kWrittenTogether = 128;
constexpr size_t kTogetherBytes = size_t{1} << 20;

/// Returns a mark for a slot of the clock (MarkOf).
uint64_t RandomMark() { return 1 + RandomNumber() % kMaxMark; }

absl::Status OutcomeUnknownError() {
  return MarkInDoubt(
      absl::UnavailableError("the connection was lost at the commit, and others have written since"));
}

bool IsAssigned(const CellWrite& cell) { return !cell.timestamp; }
bool AnyAssigned(std::span<const CellWrite> cells) {
  return std::any_of(cells.begin(), cells.end(), IsAssigned);
}
bool AllAssigned(std::span<const CellWrite> cells) {
  return std::all_of(cells.begin(), cells.end(), IsAssigned);
}

}  // namespace

/// The timestamps of one transaction.
class RowWriter::Clock {
 public:
  /// Locks the slots until the transaction ends, and advances each by `steps` timestamps.
  static absl::StatusOr<Clock> Advance(Connection& connection, const Table& table,
                                       const std::vector<uint32_t>& slots, uint64_t steps) {
    Clock clock;
    clock.sent_ = {.slot = slots[0], .mark = RandomMark(), .last = 0};
    Call advance = connection.Prepare(Sql::kAdvanceClock, table, slots.size());
    for (const uint32_t slot : slots) advance.Bind(slot).Bind(steps - 1);
    advance.Bind(MarkOf(clock.sent_.slot)).Bind(clock.sent_.mark).Bind(steps);
    const auto take = [&](Rows rows) {
      while (rows.Next()) {
        const auto slot = static_cast<uint32_t>(rows.Uint(1));
        if (slot >= kClockSlots) continue;
        clock.next_[slot] = rows.Uint(2) - steps + 1;
        if (slot == clock.sent_.slot) clock.sent_.last = rows.Uint(2);
      }
    };
    if (connection.traits().returning) {
      take(advance.Query());
    } else {
      advance.Execute();
      Call read = connection.Prepare(Sql::kReadClock, table, slots.size());
      for (const uint32_t slot : slots) read.Bind(slot);
      take(read.Query());
    }
    for (const auto& [slot, next] : clock.next_) {
      if (next + steps > kMaxTimestamp) {
        return absl::ResourceExhaustedError(
            "timestamp: the shard's clock is at its end, 2^63 - 1 ms, so it can assign no further timestamp; "
            "put with timestamps of your own");
      }
    }
    return clock;
  }

  /// Returns the slot's next timestamp. May be called for a slot as often as there were steps.
  uint64_t Next(uint32_t slot) { return next_[slot]++; }
  const Sent& sent() const { return sent_; }

 private:
  std::map<uint32_t, uint64_t> next_;
  Sent sent_{};
};

RowWriter::Fate RowWriter::FateOf(Connection& connection, const Table& table, const Sent& sent) {
  // Locking the slot waits for that transaction, if it is still running.
  Rows rows = connection.Prepare(Sql::kLockClock, table).Bind(sent.slot).Bind(MarkOf(sent.slot)).Query();
  uint64_t last = 0;
  while (rows.Next()) {
    if (rows.Uint(1) == sent.slot) {
      last = rows.Uint(2);
    } else if (rows.Uint(2) == sent.mark) {
      return Fate::kCommitted;
    }
  }
  // Each committed transaction advances the slot, and nothing sets it back.
  return last < sent.last ? Fate::kNotCommitted : Fate::kUnknown;
}

void RowWriter::Commit(Transaction& transaction, const Sent& sent, std::optional<Sent>& in_doubt) {
  in_doubt = sent;
  try {
    transaction.Commit();
  } catch (const sql::SQLException& error) {
    if (Classify(error) == Trouble::kConflict) in_doubt.reset();
    throw;
  }
}

uint32_t RowWriter::SlotOf(std::string_view row) const {
  return static_cast<uint32_t>(Fnv1a(row) % kClockSlots);
}

void RowWriter::Store(Connection& connection, const Table& table, std::span<const StoredCell> cells) {
  while (!cells.empty()) {
    const size_t count = std::min(cells.size(), kStatementCells);
    Call call = connection.Prepare(Sql::kPutCells, table, count);
    for (const StoredCell& cell : cells.first(count)) {
      call.Bind(cell.row).Bind(cell.column).Bind(cell.timestamp).Bind(cell.value);
    }
    call.Execute();
    cells = cells.subspan(count);
  }
}

absl::Status RowWriter::Check(Connection& connection, const Table& table, std::string_view row,
                              const Condition& condition) const {
  Rows rows = connection.Prepare(Sql::kNewestValue, table)
                  .Bind(row)
                  .Bind(condition.column)
                  .Bind(dataset_->LowestLive(connection))
                  .Query();
  if (!rows.Next()) return CheckCondition(condition, std::nullopt);
  return CheckCondition(condition, rows.Bytes(1));
}

absl::StatusOr<PutResult> RowWriter::Put(uint32_t shard, std::string_view row,
                                         std::span<const CellWrite> cells,
                                         const WriteOptions& options) const {
  const bool assigned = AnyAssigned(cells);
  const bool clocked = assigned || options.condition;
  std::optional<Sent> in_doubt;
  PutResult result;
  // A write that uses the shard's clock leaves a mark there. For other writes, nothing tells whether they
  // were committed, or whether other clients have deleted them since.
  const Repeat repeat = clocked ? Repeat::kAfterCheck : Repeat::kIfNotCommitted;
  return fleet_->Run(ShardSpace::kMod, shard, repeat,
                     [&](Connection& connection) -> absl::StatusOr<PutResult> {
                       if (auto status = dataset_->CheckDurable(connection, options.sync); !status.ok()) {
                         return in_doubt ? MarkInDoubt(std::move(status)) : status;
                       }
                       const Table table = dataset_->TableOn(shard);
                       std::vector<StoredCell> stored;
                       stored.reserve(cells.size());
                       for (const CellWrite& cell : cells)
                         stored.push_back({row, cell.column, cell.timestamp.value_or(0), cell.value});
                       if (!clocked && cells.size() <= kStatementCells) {
                         Store(connection, table, stored);
                         return PutResult{};
                       }
                       Transaction transaction(connection, Transaction::Kind::kWrite);
                       if (!clocked) {
                         Store(connection, table, stored);
                         transaction.Commit();
                         return PutResult{};
                       }
                       if (in_doubt) {
                         const Fate fate = FateOf(connection, table, *in_doubt);
                         if (fate == Fate::kCommitted) return result;
                         if (fate == Fate::kUnknown) return OutcomeUnknownError();
                       }
                       Sent sent{};
                       uint64_t timestamp = 0;
                       do {
                         auto clock = Clock::Advance(connection, table, {SlotOf(row)}, 1);
                         if (!clock.ok()) return clock.status();
                         timestamp = clock->Next(SlotOf(row));
                         sent = clock->sent();
                       } while (Collides(cells, timestamp));
                       if (options.condition) {
                         if (auto status = Check(connection, table, row, *options.condition); !status.ok())
                           return status;
                       }
                       for (size_t i = 0; i < cells.size(); ++i) {
                         if (IsAssigned(cells[i])) stored[i].timestamp = timestamp;
                       }
                       if (assigned) result.timestamp = timestamp;
                       Store(connection, table, stored);
                       Commit(transaction, sent, in_doubt);
                       return result;
                     });
}

RowWriter::ClockNeeds RowWriter::ClockNeedsOf(std::span<const RowWrite> writes,
                                              std::span<const size_t> places) const {
  std::map<uint32_t, uint64_t> steps;  // by slot
  for (const size_t place : places) {
    if (AnyAssigned(writes[place].cells)) ++steps[SlotOf(writes[place].row)];
  }
  ClockNeeds needs;
  for (const auto& [slot, count] : steps) {
    needs.slots.push_back(slot);
    needs.steps = std::max(needs.steps, count);
  }
  return needs;
}

void RowWriter::PutTogether(uint32_t shard, std::span<const RowWrite> writes, std::span<const size_t> places,
                            std::vector<absl::StatusOr<PutResult>>& results) const {
  const ClockNeeds needs = ClockNeedsOf(writes, places);
  const bool sync = writes[places[0]].options.sync;  // PutMany groups by it
  std::vector<std::optional<uint64_t>> assigned(places.size());
  std::optional<Sent> in_doubt;
  // Put says why.
  const Repeat repeat = needs.slots.empty() ? Repeat::kIfNotCommitted : Repeat::kAfterCheck;
  const absl::Status status =
      fleet_->Run(ShardSpace::kMod, shard, repeat, [&](Connection& connection) -> absl::Status {
        if (auto durable = dataset_->CheckDurable(connection, sync); !durable.ok()) {
          return in_doubt ? MarkInDoubt(std::move(durable)) : durable;
        }
        const Table table = dataset_->TableOn(shard);
        std::vector<StoredCell> stored;
        const auto add = [&](size_t i) {
          const RowWrite& write = writes[places[i]];
          for (const CellWrite& cell : write.cells) {
            stored.push_back(
                {write.row, cell.column, cell.timestamp ? *cell.timestamp : *assigned[i], cell.value});
          }
        };
        const auto put = [&] {
          // Cells are put in the order of keys, so that all batches lock in the same order. Cells of one key
          // keep theirs.
          std::stable_sort(stored.begin(), stored.end(), [](const StoredCell& a, const StoredCell& b) {
            return std::tie(a.row, a.column, b.timestamp) < std::tie(b.row, b.column, a.timestamp);
          });
          Store(connection, table, stored);
        };
        if (needs.slots.empty()) {
          for (size_t i = 0; i < places.size(); ++i) add(i);
          if (stored.size() <= kStatementCells) {
            put();
            return absl::OkStatus();
          }
          Transaction transaction(connection, Transaction::Kind::kWrite);
          put();
          transaction.Commit();
          return absl::OkStatus();
        }
        Transaction transaction(connection, Transaction::Kind::kWrite);
        if (in_doubt) {
          const Fate fate = FateOf(connection, table, *in_doubt);
          if (fate == Fate::kCommitted) return absl::OkStatus();
          if (fate == Fate::kUnknown) return OutcomeUnknownError();
        }
        auto clock = Clock::Advance(connection, table, needs.slots, needs.steps);
        if (!clock.ok()) return clock.status();
        for (size_t i = 0; i < places.size(); ++i) {
          const RowWrite& write = writes[places[i]];
          if (AnyAssigned(write.cells)) assigned[i] = clock->Next(SlotOf(write.row));
          add(i);
        }
        put();
        Commit(transaction, clock->sent(), in_doubt);
        return absl::OkStatus();
      });
  for (size_t i = 0; i < places.size(); ++i) {
    results[places[i]] = status.ok() ? absl::StatusOr<PutResult>(PutResult{assigned[i]}) : status;
  }
}

void RowWriter::PutMany(uint32_t shard, std::span<const RowWrite> writes, std::span<const size_t> places,
                        std::vector<absl::StatusOr<PutResult>>& results) const {
  const auto alone = [](const RowWrite& write) {
    return write.options.condition || (AnyAssigned(write.cells) && !AllAssigned(write.cells));
  };
  for (size_t last = places.front(); !places.empty();) {
    if (IsMigrating(results[last].status())) {
      // The router retries what was refused: it must not come after a later write of the same row.
      for (const size_t place : places) results[place] = results[last].status();
      return;
    }
    const RowWrite& first = writes[places[0]];
    if (alone(first)) {
      last = places[0];
      results[places[0]] = Put(shard, first.row, first.cells, first.options);
      places = places.subspan(1);
      continue;
    }
    size_t count = 0;
    for (size_t bytes = 0; count < places.size() && count < kWrittenTogether && bytes < kTogetherBytes;
         ++count) {
      const RowWrite& write = writes[places[count]];
      // A server that does not force writes refuses those that must be forced, and no others with them.
      if (alone(write) || write.options.sync != first.options.sync) break;
      for (const CellWrite& cell : write.cells) bytes += cell.value.size();
    }
    PutTogether(shard, writes, places.first(count), results);
    last = places[count - 1];
    places = places.subspan(count);
  }
}

absl::Status RowWriter::Delete(uint32_t shard, std::string_view row, const DeleteOptions& options) const {
  if (options.cells && dataset_->max_versions != 0) {
    return absl::FailedPreconditionError(
        "cells: single cells can be deleted only where all versions are kept (max_versions = 0)");
  }
  return fleet_->Run(ShardSpace::kMod, shard, Repeat::kIfNotCommitted,
                     [&](Connection& connection) -> absl::Status {
                       if (auto status = dataset_->CheckDurable(connection, false); !status.ok())
                         return status;
                       const Table table = dataset_->TableOn(shard);
                       const auto run = [&] {
                         if (options.cells) {
                           for (const CellName& cell : *options.cells) {
                             connection.Prepare(Sql::kDeleteCell, table)
                                 .Bind(row)
                                 .Bind(cell.column)
                                 .Bind(cell.timestamp)
                                 .Execute();
                           }
                         } else if (options.columns) {
                           for (std::span<const std::string> rest(*options.columns); !rest.empty();) {
                             const auto now = rest.first(std::min(rest.size(), kStatementCells));
                             Call call = connection.Prepare(Sql::kDeleteColumns, table, now.size()).Bind(row);
                             for (const std::string& column : now) call.Bind(column);
                             call.Execute();
                             rest = rest.subspan(now.size());
                           }
                         } else {
                           connection.Prepare(Sql::kDeleteRow, table).Bind(row).Execute();
                         }
                       };
                       const bool single = options.cells     ? options.cells->size() == 1
                                           : options.columns ? options.columns->size() <= kStatementCells
                                                             : true;
                       if (single) {
                         run();
                         return absl::OkStatus();
                       }
                       Transaction transaction(connection, Transaction::Kind::kWrite);
                       run();
                       transaction.Commit();
                       return absl::OkStatus();
                     });
}

}  // namespace kvstore::mysql
