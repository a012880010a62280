#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "base/fair_shared_mutex.h"

namespace kvstore::rocks {

/// Locks that separate read-modify-write operations on a row from other writes of it. Plain puts take a row's
/// lock shared, since RocksDB orders them; conditional puts, deletes and trims take it exclusively. Many rows
/// share one lock (a stripe), so a thread holds one lock at a time, or several shared ones taken in ascending
/// order of stripes, none of them twice (FairSharedMutex). Thread-safe.
class RowLocks {
 public:
#if defined(__SANITIZE_THREAD__)
  /// ThreadSanitizer, which looks for deadlocks, gives up where a thread holds more than 64 locks; each
  /// stripe has two.
  static constexpr size_t kStripes = 16;
#else
  static constexpr size_t kStripes = 1024;
#endif

  using Lock = std::unique_lock<FairSharedMutex>;
  using SharedLock = std::shared_lock<FairSharedMutex>;

  static size_t StripeOf(uint64_t row_hash) { return row_hash % kStripes; }

  SharedLock Share(uint64_t row_hash) { return std::shared_lock(stripes_[StripeOf(row_hash)]); }
  Lock Exclude(uint64_t row_hash) { return std::unique_lock(stripes_[StripeOf(row_hash)]); }
  SharedLock ShareStripe(size_t stripe) { return std::shared_lock(stripes_[stripe]); }
  /// As ShareStripe, but does not wait: the result holds no lock if another holds it exclusively, or waits
  /// for that.
  SharedLock TryShareStripe(size_t stripe) { return {stripes_[stripe], std::try_to_lock}; }
  /// Takes all locks exclusively: no write is in flight while the caller holds them.
  std::vector<Lock> ExcludeAll() {
    std::vector<Lock> locks;
    locks.reserve(kStripes);
    for (FairSharedMutex& stripe : stripes_) locks.emplace_back(stripe);
    return locks;
  }
  /// Waits until every lock that is held now was released once; new holders may come meanwhile.
  void WaitForHolders() {
    for (FairSharedMutex& stripe : stripes_) const std::unique_lock passed(stripe);
  }

 private:
  std::array<FairSharedMutex, kStripes> stripes_;
};

}  // namespace kvstore::rocks
