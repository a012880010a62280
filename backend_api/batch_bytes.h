#pragma once

#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kvstore_api/limits.h"
#include "kvstore_api/types.h"

namespace kvstore {

/// The limit for the names and values in all answers of one batch of reads. The entry that exceeds it is the
/// last one that is read; the first entry is always read, so that who asks again for the others comes to an
/// end. Without the limit, a batch of 10,000 rows with 8 MiB each would not fit into memory.
inline constexpr size_t kMaxBatchBytes = kMaxPageBytes;

/// During its lifetime, batches of reads that this thread asks for end after fewer bytes than kMaxBatchBytes:
/// for callers that take the rest in further batches, such as a server, which has many of them in memory at a
/// time. Backends in other processes do not know it.
class SmallBatches {
 public:
  explicit SmallBatches(size_t bytes) : before_(std::exchange(most_, bytes)) {}
  ~SmallBatches() { most_ = before_; }
  SmallBatches(const SmallBatches&) = delete;
  SmallBatches& operator=(const SmallBatches&) = delete;

  /// Returns the limit that is in force.
  static size_t most() { return most_; }

 private:
  static inline thread_local size_t most_ = kMaxBatchBytes;
  const size_t before_;
};

/// Counts the bytes that a batch has read, against the limit in force where it is made. Thread-safe.
class BatchBytes {
 public:
  bool full() const { return left() == 0; }
  /// Returns how many more bytes there may be before the batch is full.
  size_t left() const {
    const size_t bytes = bytes_.load(std::memory_order_relaxed);
    return bytes > most_ ? 0 : most_ - bytes + 1;
  }
  void Add(size_t bytes) { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void Add(const std::vector<Item>& items) {
    size_t bytes = 0;
    for (const Item& item : items) {
      bytes += item.column.size();
      for (const Cell& cell : item.cells) bytes += cell.value.size();
    }
    Add(bytes);
  }

 private:
  const size_t most_ = SmallBatches::most();
  std::atomic<size_t> bytes_{0};
};

/// The error of entries after the limit, which were not read: RESOURCE_EXHAUSTED, ask for them in another
/// batch. IsPaused (scan_budget.h) is true for it.
absl::Status BatchFullError();

}  // namespace kvstore
