#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace kvstore::cli {

/// A progress bar on standard error, shown only if that is a terminal. Externally synchronised.
class ProgressBar {
 public:
  /// unit  the unit of the progress: "bytes", "lines".
  ProgressBar(std::string title, std::string unit);
  ~ProgressBar();

  /// total  the final value of `done`; 0 if it is not known.
  /// note   text after the figures, a rate for example.
  void Show(uint64_t done, uint64_t total, const std::string& note = "");

 private:
  const std::string title_;
  const std::string unit_;
  const bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace kvstore::cli
