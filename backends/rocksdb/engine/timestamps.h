#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/mutex.h"

namespace kvstore::rocks {

/// Assigns timestamps: the wall clock in ms, but for each row later than all timestamps assigned to it
/// before, also across a restart and when the clock is set back.
///
/// Rows share slots by hash; a slot remembers the last timestamp that it assigned. A row that is put more
/// than a thousand times a second runs ahead of the clock, along with the other rows of its slot. Only
/// ceilings must survive a restart: every assigned timestamp is below the stored common ceiling, which moves
/// about once a second, or below the stored ceiling of its slot if the slot runs ahead. A restart begins at
/// the ceilings: up to a second ahead after a crash, exact after a clean close. Thread-safe.
class Timestamps {
 public:
  static constexpr size_t kSlots = 1 << 16;

  /// Stores a ceiling. `slot` is kSlots for the common ceiling; a ceiling of 0 removes that of a slot. Must
  /// be ordered before the writes that use the timestamps, and as durable as they are.
  using Store = std::function<absl::Status(size_t slot, uint64_t ceiling)>;
  using Clock = std::function<uint64_t()>;

  /// stored  the ceilings that `store` has stored earlier, by slot.
  /// clock   returns the wall clock in ms.
  Timestamps(const std::map<size_t, uint64_t>& stored, Store store, Clock clock);

  /// Returns the next timestamp for a row. RESOURCE_EXHAUSTED at the end of the range of timestamps; in a
  /// PromptScope a WouldWaitError while another thread stores a ceiling; else the errors of the store.
  absl::StatusOr<uint64_t> Assign(uint64_t row_hash);

  /// The highest timestamp that was assigned, or may have been before a crash; 0 if there is none.
  uint64_t Latest() const;
  /// Makes all timestamps that are assigned from now on higher than this one. An Assign that runs meanwhile
  /// may have read the clock before, and return a lower one: a migration calls this while its dataset does
  /// not serve here (Gate), so that no put of the dataset runs. Those of other datasets need no higher ones.
  absl::Status RaiseTo(uint64_t timestamp);

  /// Stores exact ceilings. Assign must not be called afterwards.
  absl::Status Close();

 private:
  uint64_t Now() const { return std::max(clock_(), floor_.load(std::memory_order_relaxed)); }
  absl::Status RaiseCeiling(size_t slot, uint64_t timestamp, uint64_t now);
  absl::Status RaiseCeilingAlone(size_t slot, uint64_t timestamp, uint64_t now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(ceilings_mutex_);

  const Store store_;
  const Clock clock_;
  std::atomic<uint64_t> floor_{0};  // the common ceiling of the run before, or what RaiseTo has set
  std::unique_ptr<std::atomic<uint64_t>[]> last_;
  std::atomic<uint64_t> ceiling_{0};
  Mutex ceilings_mutex_;  // held while a ceiling is stored
  std::map<size_t, uint64_t> slot_ceilings_ ABSL_GUARDED_BY(ceilings_mutex_);
};

}  // namespace kvstore::rocks
