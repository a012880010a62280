#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"

namespace kvstore::rocks {

/// Assigns timestamps: the wall clock in ms, but for each row later than all that it was assigned before,
/// also across a restart and when the clock is set back.
///
/// Rows share slots by hash; a slot remembers the last timestamp it gave. A row that is put more than a
/// thousand times a second runs ahead of the clock, with the rows of its slot, and no others. What must
/// survive a restart are ceilings: every timestamp given is below the stored common ceiling, which moves
/// about once a second, or below its slot's stored ceiling if the slot runs ahead. A restart begins at the
/// ceilings: at most a second ahead after a crash, exact after a clean close. Thread-safe.
class Timestamps {
 public:
  static constexpr size_t kSlots = 1 << 16;

  /// How ceilings are kept. `slot` is kSlots for the common one. A ceiling of 0 forgets that of a slot.
  /// Must be ordered before the writes that use the timestamps, and as durable as they are.
  using Store = std::function<absl::Status(size_t slot, uint64_t ceiling)>;
  using Clock = std::function<uint64_t()>;

  /// stored  the ceilings as kept by `store` earlier, by slot.
  /// clock   the wall clock in ms.
  Timestamps(const std::map<size_t, uint64_t>& stored, Store store, Clock clock);

  /// RESOURCE_EXHAUSTED at the end of the range of timestamps; or what the store returned.
  absl::StatusOr<uint64_t> Assign(uint64_t row_hash);

  /// The highest that was assigned, or may have been before a crash; 0: none.
  uint64_t Latest() const;
  /// All that are assigned from now on are higher.
  absl::Status RaiseTo(uint64_t timestamp);

  /// Stores exact ceilings. No Assign may follow.
  absl::Status Close();

 private:
  uint64_t Now() const { return std::max(clock_(), floor_.load(std::memory_order_relaxed)); }
  absl::Status Raise(size_t slot, uint64_t timestamp, uint64_t now);

  const Store store_;
  const Clock clock_;
  std::atomic<uint64_t> floor_{0};  // the common ceiling of the life before, or raised to
  std::unique_ptr<std::atomic<uint64_t>[]> last_;
  std::atomic<uint64_t> ceiling_{0};
  std::mutex ceilings_mutex_;
  std::map<size_t, uint64_t> slot_ceilings_;
};

}  // namespace kvstore::rocks
