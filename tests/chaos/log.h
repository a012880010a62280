#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

namespace kvstore::testing::chaos {

/// What operators and faults did and what they were answered, in order, each line with its time in seconds
/// since the beginning; and what must not have happened. Thread-safe.
class Log {
 public:
  /// Lines go to `file` at once.
  explicit Log(const std::filesystem::path& file);

  void Say(const std::string& who, const std::string& what);
  /// Something that must not happen: the run has failed.
  void Fail(const std::string& who, const std::string& what);

  std::vector<std::string> failures() const;
  /// All lines.
  std::string text() const;

 private:
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;
  std::ofstream file_;
  std::vector<std::string> lines_;
  std::vector<std::string> failures_;
};

}  // namespace kvstore::testing::chaos
