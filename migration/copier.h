#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "backend_api/change_capture.h"
#include "backend_api/unit_reader.h"
#include "backend_api/unit_writer.h"
#include "base/mutex.h"
#include "kvstore_api/dataset.h"

namespace kvstore::migration {

/// Ensures that a unit is copied by one thread at a time. Threads that copy units which nobody else copies
/// share the lock; a thread that may copy any unit holds it exclusively.
///
/// It is granted in the order of arrival. The locks of the standard library let a thread that has just
/// released the lock take it again at once, so that the others would starve. Thread-safe.
class CopyLock {
 public:
  /// Holds the lock until it is destroyed.
  class Guard {
   public:
    Guard(CopyLock& lock, bool exclusive) : lock_(lock) { lock_.Lock(exclusive); }
    ~Guard() { lock_.Unlock(); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    CopyLock& lock_;
  };

  [[nodiscard]] Guard Share() { return Guard(*this, false); }
  [[nodiscard]] Guard Exclude() { return Guard(*this, true); }

 private:
  void Lock(bool exclusive);
  void Unlock();

  Mutex mutex_;
  std::condition_variable changed_;
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 0;     // the next thread's ticket
  uint64_t serving_ ABSL_GUARDED_BY(mutex_) = 0;  // the ticket that is granted next
  int holders_ ABSL_GUARDED_BY(mutex_) = 0;
  bool exclusive_ ABSL_GUARDED_BY(mutex_) = false;  // one of them holds it exclusively
};

/// The interfaces that a copy uses of the side that is the truth.
struct CopySource {
  UnitReader& units;
  ChangeCapture& changes;
};

/// The interfaces that a copy uses of the other side. It reads there, too: units that the truth does not have
/// are removed.
struct CopyTarget {
  UnitReader& units;
  UnitWriter& writer;
};

/// Copies units from the side that is the truth to the other one, under one epoch. Thread-safe.
///
/// A copy lists a unit's log entries before it reads the unit, replaces it, and only then removes exactly
/// those entries: a write in between has added another one, and the unit is copied again. docs/migrating.md
/// has the reasons.
class Copier {
 public:
  /// All that `from` and `to` refer to must outlive it.
  ///
  /// check  called after units were read and before they are written to the other side, except in a backfill:
  ///        tells whether what was read can still be trusted. The copy fails with its error. May be null.
  Copier(Shape shape, CopySource from, CopyTarget to, uint64_t epoch, std::function<absl::Status()> check)
      : shape_(shape), from_(from), to_(to), epoch_(epoch), check_(std::move(check)) {}

  /// Copies the units that the first entries of the dirty log name, and removes those entries. Returns how
  /// many entries there were; 0: the log is empty.
  absl::StatusOr<size_t> Drain();
  /// Drains until the log is empty. That means that everything is copied only if clients' writes are held.
  /// DEADLINE_EXCEEDED if the log is not empty by then; CANCELLED if `stop` becomes true.
  absl::Status DrainAll(std::chrono::steady_clock::time_point deadline, const std::atomic<bool>& stop);

  /// The size and the end of one page of a partition's scan.
  struct Page {
    size_t units = 0;
    size_t bytes = 0;
    bool ended = false;  ///< The scan has ended.
    /// The key of the last unit. On a page without units the key at which the scan continues; empty at the
    /// end.
    std::string last;
  };
  /// Copies the next page of the scan.
  ///
  /// fresh  as in UnitWriter::Replace.
  absl::StatusOr<Page> CopyPage(UnitScan& scan, bool fresh);

  CopyLock& lock() { return lock_; }
  uint64_t drained() const { return drained_.load(std::memory_order_relaxed); }
  const CopySource& from() const { return from_; }
  const CopyTarget& to() const { return to_; }

  /// Copies these units. The caller holds lock() exclusively.
  absl::Status Copy(std::span<const std::string> keys);

 private:
  /// How many entries of each log are listed together: at first, and at most, which is reached where many
  /// entries name few units that are written again and again.
  static constexpr size_t kEntries = 4000;
  static constexpr size_t kMostEntries = 64'000;

  /// Copies all units of a row.
  absl::Status CopyRow(const std::string& row);
  /// Writes units to the other side, unless check_ says that what was read cannot be trusted.
  absl::Status Replace(std::span<const Unit> units);

  const Shape shape_;
  const CopySource from_;
  const CopyTarget to_;
  const uint64_t epoch_;
  const std::function<absl::Status()> check_;
  CopyLock lock_;
  size_t listed_ =
      kEntries;  // how many entries the next drain lists; whoever holds lock_ exclusively uses it
  std::atomic<uint64_t> drained_{0};
};

/// Drains the dirty log in a thread of its own, until it is destroyed or a drain fails. The limits of the
/// thread that makes it (CallScope) hold for it, too.
class Drainer {
 public:
  explicit Drainer(Copier& copier);
  ~Drainer();
  Drainer(const Drainer&) = delete;
  Drainer& operator=(const Drainer&) = delete;

  /// The error that has stopped it; OK while it works.
  absl::Status status() const;
  /// Ends it. Returns the error that has stopped it before; OK if it worked until now.
  absl::Status Stop();
  /// Stops copying until it is called with false.
  void Pause(bool paused) { paused_ = paused; }

 private:
  void Run();

  Copier& copier_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> paused_{false};
  mutable Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace kvstore::migration
