#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/row_store.h"
#include "backends/mysql/driver/statements.h"
#include "backends/mysql/fleet/dataset.h"
#include "backends/mysql/fleet/fleet.h"

namespace kvstore::mysql {

/// Writes rows of one dataset. Thread-safe.
///
/// A timestamp that the store assigns comes from the shard's clock. It is the server's time, but for each row
/// it is later than all that the row was assigned before, by whichever process. Rows share the slots of the
/// clock by hash. A slot stays locked until the write is committed, so that the order of timestamps is the
/// order of the writes; conditional puts lock it too, and so exclude each other.
class RowWriter {
 public:
  static constexpr uint32_t kClockSlots = mysql::kClockSlots;

  RowWriter(std::shared_ptr<Fleet> fleet, std::shared_ptr<const Dataset> dataset)
      : fleet_(std::move(fleet)), dataset_(std::move(dataset)) {}

  /// RowStore::Put, PutMany and Delete for rows of one shard.
  absl::StatusOr<PutResult> Put(uint32_t shard, std::string_view row, std::span<const CellWrite> cells,
                                const WriteOptions& options) const;
  /// Puts those of `writes` at `places`, all on one shard, in this order, into the same places of `results`.
  void PutMany(uint32_t shard, std::span<const RowWrite> writes, std::span<const size_t> places,
               std::vector<absl::StatusOr<PutResult>>& results) const;
  absl::Status Delete(uint32_t shard, std::string_view row, const DeleteOptions& options) const;

 private:
  /// A cell as it is stored; views into the caller's arguments.
  struct StoredCell {
    std::string_view row;
    std::string_view column;
    uint64_t timestamp;
    std::string_view value;
  };
  class Clock;
  /// Tells what a transaction whose commit was sent has written into the shard's clock.
  struct Sent {
    uint32_t slot;
    uint64_t mark;
    uint64_t last;  // the slot's last timestamp
  };
  enum class Fate : uint8_t {
    kCommitted,
    kNotCommitted,
    kUnknown  ///< Other transactions have advanced the slot since.
  };

  /// Returns what became of a transaction. Locks the slot until the current transaction ends.
  static Fate FateOf(Connection& connection, const Table& table, const Sent& sent);
  /// Commits. If it throws, `in_doubt` is set to `sent` unless the server has surely rolled back.
  static void Commit(Transaction& transaction, const Sent& sent, std::optional<Sent>& in_doubt);
  uint32_t SlotOf(std::string_view row) const;
  /// Checks the condition against the row's newest cell of the column, which stays locked until the
  /// transaction ends.
  absl::Status Check(Connection& connection, const Table& table, std::string_view row,
                     const Condition& condition) const;
  /// Puts the cells, kStatementCells with a statement.
  static void Store(Connection& connection, const Table& table, std::span<const StoredCell> cells);
  /// Puts in one transaction: the writes have no conditions, and the cells of each write either all have
  /// timestamps or are all assigned one. All of the writes must be forced (WriteOptions::sync), or none.
  void PutTogether(uint32_t shard, std::span<const RowWrite> writes, std::span<const size_t> places,
                   std::vector<absl::StatusOr<PutResult>>& results) const;
  /// Tells what a batch takes from the shard's clock.
  struct ClockNeeds {
    std::vector<uint32_t> slots;  // ascending; none if no timestamp is assigned
    uint64_t steps = 0;           // the most timestamps that are taken from one slot
  };
  ClockNeeds ClockNeedsOf(std::span<const RowWrite> writes, std::span<const size_t> places) const;

  const std::shared_ptr<Fleet> fleet_;
  const std::shared_ptr<const Dataset> dataset_;
};

}  // namespace kvstore::mysql
