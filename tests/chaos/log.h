#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace kvstore::testing::chaos {

/// The log of a run: what operators and faults did and what they were answered, in order, each line with the
/// seconds since the beginning; and the failures. Thread-safe.
class Log {
 public:
  /// Each line is written to `file` at once.
  explicit Log(const std::filesystem::path& file);

  void Say(const std::string& who, const std::string& what);
  /// Logs something that must not happen: the run has failed.
  void Fail(const std::string& who, const std::string& what);

  std::vector<std::string> failures() const;
  /// Returns all lines.
  std::string text() const;

 private:
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  mutable Mutex mutex_;
  std::ofstream file_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> failures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kvstore::testing::chaos
