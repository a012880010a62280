#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace kvstore::cli {

/// The lines of a file that could not be loaded. They go to the reject file, as lines of JSON: {"line",
/// "error", "text"}; or, where there is none, the first five are remembered. Externally synchronised.
class RejectedLines {
 public:
  /// file  path of the reject file, which is made anew for the first line; empty: none.
  explicit RejectedLines(std::string file) : file_(std::move(file)) {}

  /// Lines are added to the file that an earlier, interrupted command left behind.
  void Append() { append_ = true; }
  /// Throws Failure if the file cannot be written.
  void Add(uint64_t line, std::string_view text, const std::string& why);

  /// Says on standard error what was rejected and is kept nowhere; nothing if there is a reject file.
  void Tell() const;
  /// [{"line", "error"}] of the first lines that are kept nowhere.
  Json First() const;

 private:
  struct Rejected {
    uint64_t line = 0;
    std::string why;
  };
  const std::string file_;
  bool append_ = false;
  std::ofstream out_;
  std::vector<Rejected> first_;
  uint64_t kept_nowhere_ = 0;
};

}  // namespace kvstore::cli
