#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "kvstore_api/dataset.h"
#include "kvstore_api/migration_endpoint.h"

namespace kvstore::migration {

/// One copy of a unit at a time: those who copy what nobody else copies share it, those who copy anything
/// have it alone. In the order in which they came: a lock of the standard library lets the one that has just
/// had it take it again, and the others wait for ever. Thread-safe.
class CopyLock {
 public:
  /// Holds it, until it goes.
  class Guard {
   public:
    Guard(CopyLock& lock, bool alone) : lock_(lock) { lock_.Enter(alone); }
    ~Guard() { lock_.Leave(); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    CopyLock& lock_;
  };

  [[nodiscard]] Guard Share() { return Guard(*this, false); }
  [[nodiscard]] Guard Exclude() { return Guard(*this, true); }

 private:
  void Enter(bool alone);
  void Leave();

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  uint64_t next_ = 0;     // ticket
  uint64_t serving_ = 0;  // the ticket whose turn it is
  int inside_ = 0;
  bool alone_ = false;
};

/// Copies units from the side that is the truth to the other one, under one epoch. Thread-safe.
///
/// A copy lists a unit's log entries before it reads the unit, replaces it, and only then removes exactly
/// those entries: a write in between has added another one, and the unit is copied again. docs/migrating.md
/// has the reasons.
class Copier {
 public:
  /// Both endpoints must outlive it.
  ///
  /// check  asked between the reading of units and their writing on the other side, but for a backfill:
  /// whether what
  ///        was read is still to be believed. What it gives other than OK, the copy fails with. May be null.
  Copier(Shape shape, MigrationEndpoint& from, MigrationEndpoint& to, uint64_t epoch,
         std::function<absl::Status()> check)
      : shape_(shape), from_(from), to_(to), epoch_(epoch), check_(std::move(check)) {}

  /// Copies the units of the first entries of the dirty log. How many entries there were; 0: none is left.
  absl::StatusOr<size_t> Drain();
  /// Drains until nothing is left; DEADLINE_EXCEEDED if that takes longer, CANCELLED if `stop` says so. No
  /// write may come in between for it to mean that all is copied.
  absl::Status DrainAll(std::chrono::steady_clock::time_point deadline, const std::atomic<bool>& stop);

  /// What one page of a partition's scan had.
  struct Page {
    size_t units = 0;
    size_t bytes = 0;
    bool ended = false;
    std::string last;  ///< Key of the last unit, or, without units, where the scan goes on; empty at the end.
  };
  /// Copies the next page of the scan. fresh: as in MigrationEndpoint::Replace.
  absl::StatusOr<Page> CopyPage(UnitScan& scan, bool fresh);

  CopyLock& lock() { return lock_; }
  uint64_t drained() const { return drained_.load(std::memory_order_relaxed); }
  MigrationEndpoint& from() { return from_; }
  MigrationEndpoint& to() { return to_; }

  /// Copies these units. Under the lock, exclusively.
  absl::Status Copy(std::span<const std::string> keys);

 private:
  /// Entries of each log that are listed together: more where they are of few units, written again and again.
  static constexpr size_t kEntries = 4000;
  static constexpr size_t kMostEntries = 64'000;

  /// Copies all units of a row.
  absl::Status CopyRow(const std::string& row);
  /// Writes what was read, if it is to be believed.
  absl::Status Replace(std::span<const Unit> units);

  const Shape shape_;
  MigrationEndpoint& from_;
  MigrationEndpoint& to_;
  const uint64_t epoch_;
  const std::function<absl::Status()> check_;
  CopyLock lock_;
  size_t listed_ = kEntries;  // entries that the next drain lists; guarded by lock_, alone
  std::atomic<uint64_t> drained_{0};
};

/// Drains in a thread of its own, as long as it lives.
class Drainer {
 public:
  explicit Drainer(Copier& copier);
  ~Drainer();
  Drainer(const Drainer&) = delete;
  Drainer& operator=(const Drainer&) = delete;

  /// What it has failed with, and stopped.
  absl::Status status() const;
  /// Stops copying until it is called with false.
  void Pause(bool paused) { paused_ = paused; }

 private:
  void Run();

  Copier& copier_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> paused_{false};
  mutable std::mutex mutex_;
  absl::Status status_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace kvstore::migration
