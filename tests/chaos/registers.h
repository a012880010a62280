#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bench/history.h"

namespace kvstore::testing::chaos {

/// What clients did to the keys of a dataset and were told. Thread-safe.
class Registers {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr uint64_t kNone = bench::History::kNone;

  explicit Registers(uint32_t keys);

  /// A write or delete that is under way. Neither Succeed nor Fail: its outcome is unknown.
  struct Pending {
    uint32_t key = 0;
    uint64_t value = kNone;  ///< What is to be written; kNone of a delete.
    size_t operation = 0;
    size_t nth = 0;
  };
  /// With a value that no other write has.
  Pending BeginWrite(uint32_t key);
  Pending BeginDelete(uint32_t key);
  void Succeed(const Pending& pending) { SucceedBy(pending, Clock::now()); }
  /// It is known to have happened by that time.
  void SucceedBy(const Pending& pending, Clock::time_point time);
  /// It certainly did not happen.
  void Fail(const Pending& pending);

  size_t BeginRead(uint32_t key) { return history_.Begin(key, bench::History::Kind::kRead); }
  void EndRead(size_t read, uint64_t value) { history_.End(read, value); }
  void FailRead(size_t read) { history_.Fail(read); }

  /// An announced loss: what was written to the key since then may be gone, now or later: it has the value of
  /// that time again, or one in between. Nothing older.
  void MayHaveLost(uint32_t key, Clock::time_point since);

  /// No room for more: clients do nothing any more.
  bool full() const { return history_.full(); }
  size_t size() const { return history_.size(); }
  /// Whether one order explains all that was answered. What is wrong with one key; none if all is well.
  std::optional<std::string> Check() const { return history_.Check(); }

 private:
  struct Write {
    uint64_t value = kNone;
    Clock::time_point begin;
    std::optional<Clock::time_point> end;  // none: not known
    bool failed = false;
  };
  Pending Begin(uint32_t key, bench::History::Kind kind, uint64_t value);

  bench::History history_;
  mutable std::mutex mutex_;
  std::vector<std::vector<Write>> writes_;  // by key, as they began; guarded by mutex_
};

}  // namespace kvstore::testing::chaos
