#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "server/caller_share.h"
#include "server/options.h"

namespace kvstore::server {

/// Counts calls and bytes in flight, and says when there are too many: of all callers together, or of one,
/// who may take half of what there is where callers are told apart.
///
/// A caller's answers may go beyond its share by what was being made when it was full: each thread makes one
/// answer at a time. That part is the caller's alone. It does not count against others, who otherwise would
/// be turned away for it. Thread-safe.
class Admission {
 public:
  /// shares  callers are told apart, and each has half; else there is one, who has all.
  Admission(const ServerLimits& limits, bool shares)
      : limits_(limits),
        calls_each_(shares ? (limits.max_calls + 1) / 2 : limits.max_calls),
        bytes_each_(shares ? (limits.max_bytes + 1) / 2 : limits.max_bytes) {}

  /// Counts a call with its request, unless there are too many: then nothing is counted. A request that is
  /// larger than what there is for it is let in where nothing else is held.
  bool Enter(CallerShare& caller, size_t bytes) {
    if (caller.calls.fetch_add(1, std::memory_order_relaxed) < calls_each_) {
      if (calls_.fetch_add(1, std::memory_order_relaxed) < limits_.max_calls) {
        if (Replace(caller, 0, bytes)) return true;
      }
      calls_.fetch_sub(1, std::memory_order_relaxed);
    }
    caller.calls.fetch_sub(1, std::memory_order_relaxed);
    refused_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  /// Counts a call that is let in however many there are.
  void EnterAlways(CallerShare& caller) {
    caller.calls.fetch_add(1, std::memory_order_relaxed);
    calls_.fetch_add(1, std::memory_order_relaxed);
  }
  /// A call that is in has another request in place of one of `before` bytes. False: it is too much, as in
  /// Enter, and the one before is counted still.
  bool Replace(CallerShare& caller, size_t before, size_t bytes) {
    const size_t held = caller.bytes.fetch_add(bytes, std::memory_order_relaxed);
    const size_t charge = Charged(held, held + bytes);
    const size_t all = bytes_.fetch_add(charge, std::memory_order_relaxed);
    const bool full = (held > before && held - before + bytes > bytes_each_) ||
                      (all > before && all - before + charge > limits_.max_bytes);
    Remove(caller, full ? bytes : before);
    return !full;
  }
  /// Counts further bytes of a call that is in, as of its answer.
  void Add(CallerShare& caller, size_t bytes) {
    const size_t held = caller.bytes.fetch_add(bytes, std::memory_order_relaxed);
    bytes_.fetch_add(Charged(held, held + bytes), std::memory_order_relaxed);
  }
  void Remove(CallerShare& caller, size_t bytes) {
    if (bytes == 0) return;
    const size_t held = caller.bytes.fetch_sub(bytes, std::memory_order_relaxed);
    bytes_.fetch_sub(Charged(held - bytes, held), std::memory_order_relaxed);
  }
  void Leave(CallerShare& caller, size_t bytes) {
    Remove(caller, bytes);
    caller.calls.fetch_sub(1, std::memory_order_relaxed);
    calls_.fetch_sub(1, std::memory_order_relaxed);
  }

  /// Whether another answer may be made for the caller: of what it may hold it has not taken all, beside
  /// `own` bytes of the call that asks.
  bool HasRoom(const CallerShare& caller, size_t own) const {
    return caller.bytes.load(std::memory_order_relaxed) <= bytes_each_ + own;
  }
  /// A call that is in is ended, or a part of it, because there is no room.
  void CountRefused() { refused_.fetch_add(1, std::memory_order_relaxed); }

  size_t calls() const { return calls_.load(std::memory_order_relaxed); }
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  /// What counts for all when what a caller holds grows.
  size_t Charged(size_t before, size_t after) const {
    return std::min(after, bytes_each_) - std::min(before, bytes_each_);
  }

  const ServerLimits limits_;
  const size_t calls_each_;
  const size_t bytes_each_;
  std::atomic<size_t> calls_{0};
  std::atomic<size_t> bytes_{0};  // of each caller at most its share
  std::atomic<uint64_t> refused_{0};
};

}  // namespace kvstore::server
