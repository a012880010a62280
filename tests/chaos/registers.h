#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "testing/history.h"

namespace kvstore::testing::chaos {

/// The history of what clients did to the keys of a dataset and were told, with announced losses.
/// Thread-safe.
class Registers {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr uint64_t kNone = History::kNone;

  explicit Registers(uint32_t keys);

  /// A write or delete in flight. Its outcome is unknown until Succeed or Fail is called.
  struct Pending {
    uint32_t key = 0;
    uint64_t value = kNone;  ///< The value that is written; kNone for a delete.
    size_t operation = 0;
    size_t nth = 0;
  };
  /// Begins a write with a value that no other write has.
  Pending BeginWrite(uint32_t key);
  Pending BeginDelete(uint32_t key);
  void Succeed(const Pending& pending) { SucceedBy(pending, Clock::now()); }
  /// Records that the write is known to have happened by `time`.
  void SucceedBy(const Pending& pending, Clock::time_point time);
  /// Records that the write certainly did not happen.
  void Fail(const Pending& pending);

  size_t BeginRead(uint32_t key) { return history_.Begin(key, History::Kind::kRead); }
  void EndRead(size_t read, uint64_t value) { history_.End(read, value); }
  void FailRead(size_t read) { history_.Fail(read); }

  /// Records an announced loss: what was written to the key after `since` may be lost, now or later. The key
  /// may then have the value of that time again, or a later one, but no older one.
  void MayHaveLost(uint32_t key, Clock::time_point since);

  /// Whether the history is full, so that clients must stop.
  bool full() const { return history_.full(); }
  size_t size() const { return history_.size(); }
  /// Returns what no order of the operations explains; nullopt if the history is linearizable.
  std::optional<std::string> Check() const { return history_.Check(); }

 private:
  struct Write {
    uint64_t value = kNone;
    Clock::time_point begin;
    std::optional<Clock::time_point> end;  // nullopt if the outcome is unknown
    bool failed = false;
  };
  Pending Begin(uint32_t key, History::Kind kind, uint64_t value);

  History history_;
  mutable Mutex mutex_;
  std::vector<std::vector<Write>> writes_ ABSL_GUARDED_BY(mutex_);  // by key, in order of beginning
};

}  // namespace kvstore::testing::chaos
