#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/mysql/dataset.h"
#include "backends/mysql/fleet.h"
#include "backends/mysql/statements.h"
#include "kvstore_api/row_store.h"

namespace kvstore::mysql {

/// The writes of rows of one dataset. Thread-safe.
///
/// A timestamp that the store assigns comes from the shard's clock: the server's time, but for each row later
/// than all that it was assigned before, by whichever process. Rows share the slots of the clock by hash. The
/// slot stays locked until the write is committed, so that the order of timestamps is the order of the
/// writes; conditional puts lock it too, which makes them exclude each other.
class RowWriter {
 public:
  static constexpr uint32_t kClockSlots = mysql::kClockSlots;

  RowWriter(std::shared_ptr<Fleet> fleet, std::shared_ptr<const Dataset> dataset)
      : fleet_(std::move(fleet)), dataset_(std::move(dataset)) {}

  absl::StatusOr<PutResult> Put(uint32_t shard, std::string_view row, std::span<const CellWrite> cells,
                                const WriteOptions& options) const;
  /// Those of `writes` at `places`, all on one shard, in this order.
  void PutMany(uint32_t shard, std::span<const RowWrite> writes, std::span<const size_t> places,
               std::vector<absl::StatusOr<PutResult>>& results) const;
  absl::Status Delete(uint32_t shard, std::string_view row, const DeleteOptions& options) const;

 private:
  /// A cell as it is stored.
  struct StoredCell {
    std::string_view row;
    std::string_view column;
    uint64_t timestamp;
    std::string_view value;
  };
  class Clock;
  /// A transaction whose commit has been sent: what it has left in the shard's clock.
  struct Sent {
    uint32_t slot;
    uint64_t mark;
    uint64_t last;  // of the slot
  };
  /// kUnknown: others have moved the slot on since.
  enum class Fate : uint8_t { kCommitted, kNotCommitted, kUnknown };

  /// What became of it; the slot is locked until the transaction ends.
  static Fate FateOf(Connection& connection, const Table& table, const Sent& sent);
  /// Commits. Fails with `maybe` set if the outcome is unknown.
  static void Commit(Transaction& transaction, const Sent& sent, std::optional<Sent>& maybe);
  uint32_t SlotOf(std::string_view row) const;
  absl::Status Check(Connection& connection, const Table& table, std::string_view row,
                     const Condition& condition) const;
  static void Store(Connection& connection, const Table& table, std::span<const StoredCell> cells);
  void PutTogether(uint32_t shard, std::span<const RowWrite> writes, std::span<const size_t> places,
                   std::vector<absl::StatusOr<PutResult>>& results) const;

  const std::shared_ptr<Fleet> fleet_;
  const std::shared_ptr<const Dataset> dataset_;
};

}  // namespace kvstore::mysql
