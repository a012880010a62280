#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "kvstore_api/limits.h"
#include "kvstore_api/types.h"

namespace kvstore {

/// The answers of one batch of reads have at most about so many bytes of names and values together: the entry
/// that passes it is the last one that is read. 10,000 rows may be asked for at once, and have 8 MiB each.
inline constexpr size_t kMaxBatchBytes = kMaxPageBytes;

/// Counts what a batch has read. Thread-safe.
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

/// What an entry behind is told: RESOURCE_EXHAUSTED, and to be asked for in another batch. It is one of those
/// that IsPaused (looks.h) says yes to.
absl::Status BatchFullError();

}  // namespace kvstore
