#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string_view>

#include "absl/status/status.h"
#include "backend_api/migration_control.h"
#include "backend_api/outcome.h"
#include "backends/rocksdb/engine/dirty_log.h"

namespace kvstore::rocks {

class ChangeLog;

/// The state of a dataset in a migration, which decides whether clients' calls are served here. Every call of
/// a client checks it, which costs a load from memory. A write checks it while it holds its row's lock, and
/// the state changes while all row locks are held (RowLocks::ExcludeAll), so that no write is in flight once
/// the state has changed. Thread-safe.
class Gate {
 public:
  /// OK if clients may read here now; else the error to return to them (outcome.h).
  absl::Status CheckRead() const {
    const EndpointState state = state_.load(std::memory_order_acquire);
    if (state == EndpointState::kServing || state == EndpointState::kFrozen) return absl::OkStatus();
    return Refuse(state);
  }
  /// As CheckRead, for writes. The caller holds the lock of the row, or of whatever else the write excludes.
  absl::Status CheckWrite() const {
    const EndpointState state = state_.load(std::memory_order_acquire);
    return state == EndpointState::kServing ? absl::OkStatus() : Refuse(state);
  }
  /// The log in which a write records what it touches; null if nothing is captured. The caller holds the lock
  /// of CheckWrite, and the log is valid as long as it does.
  DirtyLog* capture_log() const { return capture_.load(std::memory_order_acquire); }

  /// The log of the dataset's changes; null if it keeps none. The caller holds the lock of CheckWrite, and
  /// the log is valid as long as it does.
  ChangeLog* change_log() const { return changes_.load(std::memory_order_acquire); }

  // ---- for the endpoint ----

  EndpointState state() const { return state_.load(std::memory_order_acquire); }
  /// The dirty log, also while nothing is captured in it yet; null if there is none.
  const std::shared_ptr<DirtyLog>& dirty_log() const { return dirty_; }
  void SetDirtyLog(std::shared_ptr<DirtyLog> dirty) { dirty_ = std::move(dirty); }
  /// Changes the state. The caller holds all row locks; capturing needs a dirty log.
  void SetState(EndpointState to, bool captures) {
    // First, so that whoever sees the new state sees that it is another one.
    changes_of_state_.fetch_add(1, std::memory_order_acq_rel);
    capture_.store(captures && to == EndpointState::kServing ? dirty_.get() : nullptr,
                   std::memory_order_release);
    state_.store(to, std::memory_order_release);
  }
  /// How often the state was changed. Data that was read before a change says nothing of the data after it.
  uint32_t changes() const { return changes_of_state_.load(std::memory_order_acquire); }

  // ---- for those who read changes, and for what opens and drops the log ----

  std::shared_ptr<ChangeLog> open_change_log() const { return open_changes_; }
  /// The caller holds all row locks, unless the family is not in use yet.
  void SetChangeLog(std::shared_ptr<ChangeLog> changes) {
    changes_.store(changes.get(), std::memory_order_release);
    open_changes_ = std::move(changes);
  }

  /// Held shared by calls of the migration's worker that change data, and exclusively by changes of state and
  /// epoch. Guards what follows, dirty_log() and open_change_log().
  mutable std::shared_mutex mutex;
  uint64_t epoch = 0;    // of the worker; 0 if there has been none
  bool capture = false;  // as the worker asked for last
  uint64_t ids = 0;      // IDs of the dirty log from here on have never been assigned

 private:
  static absl::Status Refuse(EndpointState state) {
    if (state == EndpointState::kFrozen)
      return WritesHeldError("the dataset is about to move: writes are held");
    return ServedElsewhereError(
        "the dataset is not served here any more: it was dropped, or is served by another backend");
  }

  std::atomic<EndpointState> state_{EndpointState::kServing};
  std::atomic<uint32_t> changes_of_state_{0};
  std::atomic<DirtyLog*> capture_{nullptr};
  std::shared_ptr<DirtyLog> dirty_;
  std::atomic<ChangeLog*> changes_{nullptr};
  std::shared_ptr<ChangeLog> open_changes_;
};

}  // namespace kvstore::rocks
