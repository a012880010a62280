#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "server/options.h"

namespace kvstore::server {

/// Counts calls and bytes in flight, and says when there are too many. Thread-safe.
class Admission {
 public:
  explicit Admission(const ServerLimits& limits) : limits_(limits) {}

  /// Counts a call with its request, unless there are too many: then nothing is counted.
  bool Enter(size_t bytes) {
    const bool full = calls_.fetch_add(1, std::memory_order_relaxed) >= limits_.max_calls ||
                      bytes_.load(std::memory_order_relaxed) > limits_.max_bytes;
    if (full) {
      calls_.fetch_sub(1, std::memory_order_relaxed);
      refused_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    Add(bytes);
    return true;
  }
  /// Counts a call that is let in however many there are.
  void EnterAlways(size_t bytes) {
    calls_.fetch_add(1, std::memory_order_relaxed);
    Add(bytes);
  }
  /// Counts further bytes of a call that is in, as of its answer.
  void Add(size_t bytes) { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void Remove(size_t bytes) { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }
  void Leave(size_t bytes) {
    Remove(bytes);
    calls_.fetch_sub(1, std::memory_order_relaxed);
  }

  size_t calls() const { return calls_.load(std::memory_order_relaxed); }
  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  const ServerLimits limits_;
  std::atomic<size_t> calls_{0};
  std::atomic<size_t> bytes_{0};
  std::atomic<uint64_t> refused_{0};
};

}  // namespace kvstore::server
