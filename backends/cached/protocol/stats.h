#pragma once

#include <atomic>
#include <cstdint>

namespace kvstore::cached {

/// Counts what the caches of one shape have done since the process started.
struct CacheStats {
  std::atomic<uint64_t> hits{0};      ///< Reads that a cache has answered.
  std::atomic<uint64_t> fills{0};     ///< Reads of the backend whose answer was put into a cache.
  std::atomic<uint64_t> waits{0};     ///< Reads that have waited because somebody else was filling.
  std::atomic<uint64_t> marked{0};    ///< Reads left to the backend because a writer had marked the key.
  std::atomic<uint64_t> bypasses{0};  ///< Reads that have not asked a cache, or could not trust it.
  std::atomic<uint64_t> marks{0};     ///< Writes that have marked a key.
  std::atomic<uint64_t> unmarked{0};  ///< Writes without a mark: the server is suspended, or there is none.
  std::atomic<uint64_t> in_doubt{0};  ///< Writes that may happen yet, whose key stays marked.
  std::atomic<uint64_t> failures{0};  ///< Calls of cache servers that have failed.
  std::atomic<uint64_t> checked{0};   ///< Values that were compared with the backend.
  std::atomic<uint64_t> inconsistent{0};  ///< Checked values that differed from the backend's.
};

}  // namespace kvstore::cached
