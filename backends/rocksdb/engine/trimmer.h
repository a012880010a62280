#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "backends/rocksdb/engine/family.h"
#include "base/mutex.h"

namespace kvstore::rocks {

/// Removes surplus versions in the background. Compactions suggest columns that look too long; the trimmer's
/// thread then reads all that is stored of each, under the row's lock, and deletes what is beyond
/// max_versions. It also trims the change logs of datasets whose writers must not wait. The queue is bounded:
/// whoever has suggested what does not fit suggests it again later. Thread-safe.
class Trimmer {
 public:
  /// Stands for the dataset's change log in place of a column; no column is empty.
  static constexpr std::string_view kChangeLog{};

  /// Trims one column, given as enc(row) enc(column), of the dataset with these settings; its change log for
  /// kChangeLog. The dataset may have been dropped meanwhile, and its name be that of another one.
  using Trim =
      std::function<void(const std::shared_ptr<FamilySettings>& settings, const std::string& column)>;

  Trimmer() = default;
  ~Trimmer() { Stop(); }

  /// Starts the thread. Suggestions made before wait in the queue.
  void Start(Trim trim);
  /// Stops the thread; returns when no trim runs, and none will.
  void Stop();
  /// Queues a column, or kChangeLog. Compaction threads and writers call this, so it never waits for a trim.
  /// Returns false if the queue is full, or the trimmer has stopped.
  bool Suggest(const std::shared_ptr<FamilySettings>& settings, std::string_view column);
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
