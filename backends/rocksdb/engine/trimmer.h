#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "backends/rocksdb/family.h"

namespace kvstore::rocks {

/// Removes surplus versions in the background. Compactions suggest columns that look too long; a thread of
/// its own then looks at all that is stored of each, under the row's lock, and deletes what is beyond
/// max_versions. The queue is bounded: what does not fit is suggested again by a later compaction.
/// Thread-safe.
class Trimmer {
 public:
  /// Trims one column, given as enc(row) enc(column), of the named dataset.
  using Trim = std::function<void(const std::string& dataset, const std::string& column)>;

  Trimmer() = default;
  ~Trimmer() { Stop(); }

  /// From here on suggestions are worked off; before, they wait.
  void Start(Trim trim);
  /// Returns when no trim runs, and none will.
  void Stop();
  /// Called from compaction threads: never waits for a trim.
  void Suggest(const std::shared_ptr<FamilySettings>& settings, const std::string& column);
  /// Returns when nothing is queued or running (used by tests).
  void Drain();

 private:
  struct Suggestion {
    std::shared_ptr<FamilySettings> settings;
    std::string column;
  };

  void Run(const Trim& trim);

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Suggestion> queue_;
  bool busy_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace kvstore::rocks
