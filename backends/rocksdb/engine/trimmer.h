#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "backends/rocksdb/engine/family.h"
#include "base/mutex.h"

namespace kvstore::rocks {

/// Removes surplus versions in the background. Compactions suggest columns that look too long; the trimmer's
/// thread then reads all that is stored of each, under the row's lock, and deletes what is beyond
/// max_versions. The queue is bounded: a later compaction suggests again what does not fit. Thread-safe.
class Trimmer {
 public:
  /// Trims one column, given as enc(row) enc(column), of the named dataset.
  using Trim = std::function<void(const std::string& dataset, const std::string& column)>;

  Trimmer() = default;
  ~Trimmer() { Stop(); }

  /// Starts the thread. Suggestions made before wait in the queue.
  void Start(Trim trim);
  /// Stops the thread; returns when no trim runs, and none will.
  void Stop();
  /// Queues a column. Compaction threads call this, so it never waits for a trim.
  void Suggest(const std::shared_ptr<FamilySettings>& settings, const std::string& column);
  /// Returns when nothing is queued or running (used by tests).
  void Drain();

 private:
  struct Suggestion {
    std::shared_ptr<FamilySettings> settings;
    std::string column;
  };

  void Run(const Trim& trim);

  Mutex mutex_;
  std::condition_variable changed_;  // notified when one of the following has changed
  std::deque<Suggestion> queue_ ABSL_GUARDED_BY(mutex_);
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;  // a trim runs
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // set by Start, joined by Stop
};

}  // namespace kvstore::rocks
