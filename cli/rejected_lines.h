#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace kvstore::cli {

/// The lines of a file that could not be loaded. They go to the reject file, as lines of JSON: {"line",
/// "error", "text"}; or, where there is none, the first five are remembered. Externally synchronised.
class RejectedLines {
 public:
  /// file  path of the reject file; empty: none.
  explicit RejectedLines(std::string file) : file_(std::move(file)) {}
  ~RejectedLines();
  RejectedLines(const RejectedLines&) = delete;
  RejectedLines& operator=(const RejectedLines&) = delete;

  /// Removes the reject file of an earlier command, so that the lines in it are those of this one; there is
  /// no file unless a line is rejected. Does nothing to what is no regular file, as /dev/null. Throws Failure
  /// if the file is a symbolic link, or one of `inputs`.
  ///
  /// inputs  paths of the files that are loaded; "-": standard input.
  void Begin(const std::vector<std::string>& inputs);
  /// In place of Begin: lines are added to the file that an earlier, interrupted command left behind.
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
  int out_ = -1;  // a file descriptor, once a line was rejected
  std::vector<Rejected> first_;
  uint64_t kept_nowhere_ = 0;
};

}  // namespace kvstore::cli
