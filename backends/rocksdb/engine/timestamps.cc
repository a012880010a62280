#include "backends/rocksdb/engine/timestamps.h"

#include <algorithm>

#include "backend_api/prompt_scope.h"
#include "kvstore_api/limits.h"

namespace kvstore::rocks {
namespace {

/// A stored ceiling lies so many ms above the timestamp that needs it: one store a second, and up to a second
/// lost in a crash.
constexpr uint64_t kStepMs = 1000;

}  // namespace

Timestamps::Timestamps(const std::map<size_t, uint64_t>& stored, Store store, Clock clock)
    : store_(std::move(store)), clock_(std::move(clock)), last_(new std::atomic<uint64_t>[kSlots]()) {
  for (const auto& [slot, ceiling] : stored) {
    if (slot == kSlots) {
      floor_ = ceiling;
    } else if (ceiling > 0) {
      last_[slot] = ceiling - 1;
      slot_ceilings_[slot] = ceiling;
    }
  }
  ceiling_ = floor_.load();
}

absl::StatusOr<uint64_t> Timestamps::Assign(uint64_t row_hash) {
  const size_t slot = row_hash % kSlots;
  const uint64_t now = Now();
  std::atomic<uint64_t>& last = last_[slot];
  uint64_t before = last.load(std::memory_order_relaxed);
  uint64_t timestamp = 0;
  do {
    timestamp = std::max(now, before + 1);
  } while (!last.compare_exchange_weak(before, timestamp, std::memory_order_relaxed));
  if (timestamp > kMaxTimestamp)
    return absl::ResourceExhaustedError(
        "timestamp: the clock is at its end, 2^63 - 1 ms, so it can assign no further timestamp; put with "
        "timestamps of your own");
  if (timestamp >= ceiling_.load(std::memory_order_acquire)) {
    if (auto status = RaiseCeiling(slot, timestamp, now); !status.ok()) return status;
  }
  return timestamp;
}

absl::Status Timestamps::RaiseCeiling(size_t slot, uint64_t timestamp, uint64_t now) {
  if (!IsPrompt()) {
    ceilings_mutex_.lock();
  } else if (!ceilings_mutex_.try_lock()) {
    return WouldWaitError();
  }
  absl::Status status = RaiseCeilingAlone(slot, timestamp, now);
  ceilings_mutex_.unlock();
  return status;
}

absl::Status Timestamps::RaiseCeilingAlone(size_t slot, uint64_t timestamp, uint64_t now) {
  if (timestamp < ceiling_.load()) return absl::OkStatus();
  if (timestamp < now + kStepMs) {
    if (auto status = store_(kSlots, now + kStepMs); !status.ok()) return status;
    ceiling_.store(now + kStepMs, std::memory_order_release);
    return absl::OkStatus();
  }
  uint64_t& ceiling = slot_ceilings_[slot];
  if (timestamp < ceiling) return absl::OkStatus();
  if (auto status = store_(slot, timestamp + kStepMs); !status.ok()) return status;
  ceiling = timestamp + kStepMs;
  return absl::OkStatus();
}

uint64_t Timestamps::Latest() const {
  const uint64_t floor = floor_.load();
  uint64_t latest = floor == 0 ? 0 : floor - 1;
  for (size_t slot = 0; slot < kSlots; ++slot) latest = std::max(latest, last_[slot].load());
  return latest;
}

absl::Status Timestamps::RaiseTo(uint64_t timestamp) {
  const MutexLock lock(ceilings_mutex_);
  // Stored as the common ceiling, where the next run begins.
  if (timestamp >= ceiling_) {
    if (auto status = store_(kSlots, timestamp + 1); !status.ok()) return status;
    ceiling_ = timestamp + 1;
  }
  if (timestamp >= floor_) floor_ = timestamp + 1;
  return absl::OkStatus();
}

absl::Status Timestamps::Close() {
  const MutexLock lock(ceilings_mutex_);
  const uint64_t now = Now();
  if (ceiling_ == 0) return absl::OkStatus();  // none was ever assigned
  for (size_t slot = 0; slot < kSlots; ++slot) {
    const uint64_t last = last_[slot].load();
    const bool ahead = last > now;
    if (!ahead && !slot_ceilings_.contains(slot)) continue;
    if (auto status = store_(slot, ahead ? last + 1 : 0); !status.ok()) return status;
  }
  return store_(kSlots, now + 1);
}

}  // namespace kvstore::rocks
