#pragma once

#include <atomic>
#include <filesystem>
#include <mutex>

namespace kvstore::rocks {

/// Space that is kept back, in a file that is never read, so that a full disk can be opened and made room on:
/// to open a database, and to drop a dataset, take some.
///
/// As long as it is out writes are refused (see Engine::Write), or they would take it. Thread-safe.
class Reserve {
 public:
  explicit Reserve(std::filesystem::path file) : file_(std::move(file)) {}

  /// Gives the space back to the file system.
  void Release();
  /// Takes it again. Only if the disk has more than that to spare.
  ///
  /// needs  what opening takes, about; the file is some of those, at least 1 MiB.
  ///
  /// False if there is not enough space, and the file stays away.
  bool Restore(uint64_t needs);
  /// The same, for as much as the last time.
  bool Restore();
  /// Whether it was released, and not taken again.
  bool out() const { return out_.load(std::memory_order_relaxed); }

 private:
  bool RestoreLocked();

  const std::filesystem::path file_;
  std::atomic<bool> out_{false};
  std::mutex mutex_;
  uint64_t bytes_ = uint64_t{1} << 20;  // guarded by mutex_
};

}  // namespace kvstore::rocks
