#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string_view>

#include "absl/status/status.h"
#include "backends/rocksdb/dirty_log.h"
#include "kvstore_api/migration_endpoint.h"
#include "kvstore_api/moved.h"

namespace kvstore::rocks {

/// Where a dataset stands in a migration. Every call of a client asks, which costs a load from memory; a
/// write asks while it holds its row's lock, and the state changes while all of them are held
/// (RowLocks::ExcludeAll), so that none is under way when it has changed. Thread-safe.
class Gate {
 public:
  absl::Status CheckRead() const {
    const EndpointState state = state_.load(std::memory_order_acquire);
    if (state == EndpointState::kServing || state == EndpointState::kFrozen) return absl::OkStatus();
    return Refuse(state);
  }
  /// Under the row's lock, or the lock of whatever the write excludes.
  absl::Status CheckWrite() const {
    const EndpointState state = state_.load(std::memory_order_acquire);
    return state == EndpointState::kServing ? absl::OkStatus() : Refuse(state);
  }
  /// Where a write records what it touches; null: nowhere. Under the same lock, and valid as long.
  DirtyLog* log() const { return capture_.load(std::memory_order_acquire); }

  // ---- for the endpoint ----

  EndpointState state() const { return state_.load(std::memory_order_acquire); }
  /// Also while nothing is captured yet.
  const std::shared_ptr<DirtyLog>& dirty() const { return dirty_; }
  void SetDirty(std::shared_ptr<DirtyLog> dirty) { dirty_ = std::move(dirty); }
  /// Under all row locks. Capturing needs a dirty log.
  void Set(EndpointState to, bool captures) {
    capture_.store(captures && to == EndpointState::kServing ? dirty_.get() : nullptr,
                   std::memory_order_release);
    state_.store(to, std::memory_order_release);
  }

  /// Shared: a worker's changes. Exclusive: changes of state and epoch. Guards what follows, and dirty().
  std::shared_mutex mutex;
  uint64_t epoch = 0;    // of the worker; 0: there was none
  bool capture = false;  // as Enter said
  uint64_t ids = 0;      // of the dirty log: those from here on were never given

 private:
  static absl::Status Refuse(EndpointState state) {
    if (state == EndpointState::kFrozen) return FrozenError("the dataset is about to move: writes are held");
    return MovedError("the dataset is served by another backend");
  }

  std::atomic<EndpointState> state_{EndpointState::kServing};
  std::atomic<DirtyLog*> capture_{nullptr};
  std::shared_ptr<DirtyLog> dirty_;
};

}  // namespace kvstore::rocks
