#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "server/call/caller_share.h"
#include "server/call/options.h"

namespace kvstore::server {

/// Counts the calls and bytes in flight, and says when there are too many: in the whole server, or for one
/// caller. Where callers are told apart, one of them may have half of each limit.
///
/// The answers of one caller may exceed its share by those that were being made when the share became full:
/// one answer a thread. The excess counts for that caller only and not for the server as a whole, because
/// other callers would be turned away for it. Thread-safe.
class Admission {
 public:
  /// shares  True: callers are told apart, and each may have half. False: all calls are one caller's, which
  ///         may have everything.
  Admission(const ServerLimits& limits, bool shares)
      : limits_(limits),
        calls_each_(shares ? (limits.max_calls + 1) / 2 : limits.max_calls),
        bytes_each_(shares ? (limits.max_bytes + 1) / 2 : limits.max_bytes) {}

  /// Counts a call and the bytes of its request. Returns false, and counts nothing, if a limit is reached. A
  /// request that alone is larger than a limit is admitted while nothing else is in flight.
  bool Admit(CallerShare& caller, size_t bytes) {
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
  /// Counts a call that is admitted whatever the limits say.
  void AdmitAlways(CallerShare& caller) {
    caller.calls.fetch_add(1, std::memory_order_relaxed);
    calls_.fetch_add(1, std::memory_order_relaxed);
  }
  /// Counts another request of an admitted call, in place of its last one, which had `before` bytes. Returns
  /// false, as Admit does, if there is no room: then the last one stays counted.
  bool Replace(CallerShare& caller, size_t before, size_t bytes) {
    const size_t held = caller.bytes.fetch_add(bytes, std::memory_order_relaxed);
    const size_t charge = Charged(held, held + bytes);
    const size_t all = bytes_.fetch_add(charge, std::memory_order_relaxed);
    const bool full = (held > before && held - before + bytes > bytes_each_) ||
                      (all > before && all - before + charge > limits_.max_bytes);
    Remove(caller, full ? bytes : before);
    return !full;
  }
  /// Counts further bytes of an admitted call, such as those of its answer.
  void Add(CallerShare& caller, size_t bytes) {
    const size_t held = caller.bytes.fetch_add(bytes, std::memory_order_relaxed);
    bytes_.fetch_add(Charged(held, held + bytes), std::memory_order_relaxed);
  }
  /// Takes back what Add or Replace has counted.
  void Remove(CallerShare& caller, size_t bytes) {
    if (bytes == 0) return;
    const size_t held = caller.bytes.fetch_sub(bytes, std::memory_order_relaxed);
    bytes_.fetch_sub(Charged(held - bytes, held), std::memory_order_relaxed);
  }
  /// Ends an admitted call, which still had `bytes` in memory.
  void Release(CallerShare& caller, size_t bytes) {
    Remove(caller, bytes);
    caller.calls.fetch_sub(1, std::memory_order_relaxed);
    calls_.fetch_sub(1, std::memory_order_relaxed);
  }

  /// Returns whether another answer may be made for the caller: whether it is within its share, not counting
  /// the `own` bytes of the call that asks.
  bool HasRoom(const CallerShare& caller, size_t own) const {
    return caller.bytes.load(std::memory_order_relaxed) <= bytes_each_ + own;
  }
  /// Returns whether Admit would succeed now for a request of so many bytes.
  bool MayAdmit(const CallerShare& caller, size_t bytes) const {
    const size_t held = caller.bytes.load(std::memory_order_relaxed);
    return caller.calls.load(std::memory_order_relaxed) < calls_each_ &&
           calls_.load(std::memory_order_relaxed) < limits_.max_calls &&
           (held == 0 || held + bytes <= bytes_each_) &&
           bytes_.load(std::memory_order_relaxed) + Charged(held, held + bytes) <= limits_.max_bytes;
  }
  /// Counts that an admitted call, or a part of it, was ended for lack of room.
  void CountRefused() { refused_.fetch_add(1, std::memory_order_relaxed); }

  size_t calls() const { return calls_.load(std::memory_order_relaxed); }
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  /// Returns by how much the server's total grows when a caller's bytes grow from `before` to `after`.
  size_t Charged(size_t before, size_t after) const {
    return std::min(after, bytes_each_) - std::min(before, bytes_each_);
  }

  const ServerLimits limits_;
  const size_t calls_each_;
  const size_t bytes_each_;
  std::atomic<size_t> calls_{0};
  std::atomic<size_t> bytes_{0};  // each caller's count for at most its share
  std::atomic<uint64_t> refused_{0};
};

}  // namespace kvstore::server
