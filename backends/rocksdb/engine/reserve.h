#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>

#include "base/mutex.h"

namespace kvstore::rocks {

/// Disk space kept back in a file that is never read, so that a store can be opened, and datasets dropped, on
/// a full disk: both need some space.
///
/// While the reserve is released, writes are refused (see Engine::Write), since they would use the space up.
/// Thread-safe.
class Reserve {
 public:
  explicit Reserve(std::filesystem::path file) : file_(std::move(file)) {}

  /// Frees the space for other files.
  void Release();
  /// Allocates the space again, if several times as much is free on the disk. Returns false if not, and no
  /// file is made.
  ///
  /// needs  bytes that opening the store takes, about; the file gets a multiple of that, at least 1 MiB.
  bool Restore(uint64_t needs);
  /// The same, for as many bytes as the last time.
  bool Restore();
  /// Whether the space was released and has not been allocated again.
  bool released() const { return released_.load(std::memory_order_relaxed); }

 private:
  bool RestoreLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::filesystem::path file_;
  std::atomic<bool> released_{false};
  Mutex mutex_;
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = uint64_t{1} << 20;  // size of the file
};

}  // namespace kvstore::rocks
