#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "kvstore_api/limits.h"
#include "kvstore_api/types.h"

namespace kvstore {

/// The limit for the names and values in all answers of one batch of reads. The entry that exceeds it is the
/// last one that is read. Without it, a batch of 10,000 rows with 8 MiB each would not fit into memory.
inline constexpr size_t kMaxBatchBytes = kMaxPageBytes;

/// Counts the bytes that a batch has read. Thread-safe.
class BatchBytes {
 public:
  bool full() const { return bytes_.load(std::memory_order_relaxed) > kMaxBatchBytes; }
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
  std::atomic<size_t> bytes_{0};
};

/// The error of entries behind the limit, which were not read: RESOURCE_EXHAUSTED, ask for them in another
/// batch. IsPaused (scan_budget.h) is true for it.
absl::Status BatchFullError();

}  // namespace kvstore
