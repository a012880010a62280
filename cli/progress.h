#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace kvstore::cli {

/// A bar on standard error while long work runs; silent unless that is a terminal. Externally synchronised.
class ProgressBar {
 public:
  /// unit  what is counted: "bytes", "lines".
  ProgressBar(std::string title, std::string unit);
  ~ProgressBar();

  /// total  0 if it is not known.
  /// note   shown behind the figures: a rate, say.
  void Show(uint64_t done, uint64_t total, const std::string& note = "");

 private:
  const std::string title_;
  const std::string unit_;
  const bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace kvstore::cli
