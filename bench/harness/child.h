#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kvstore::bench {

/// A child process, which the destructor ends.
class Child {
 public:
  /// Starts a program that lies beside this one, "kv" or "kv-bench" itself, and waits for its first line.
  static absl::StatusOr<Child> Start(const std::string& program, const std::vector<std::string>& arguments);
  /// Starts another program, found by PATH; its output is discarded. If there is no such program, the child
  /// ends at once.
  static absl::StatusOr<Child> StartProgram(const std::vector<std::string>& command);
  /// Starts another program, found by PATH, that answers each line of its standard input with a line.
  static absl::StatusOr<Child> StartAnswering(const std::vector<std::string>& command);
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;

  const std::string& first_line() const { return first_line_; }
  /// Sends a line to a child of StartAnswering and waits for its answer. UNAVAILABLE if the child has ended.
  absl::StatusOr<std::string> Ask(const std::string& line);
  /// Returns whether the process has not ended.
  bool runs() const;
  /// Returns its resident memory in bytes.
  uint64_t ResidentBytes() const;

 private:
  Child(pid_t process, int input, int output) : process_(process), input_(input), output_(output) {}

  pid_t process_;
  int input_;   // its standard input
  int output_;  // its standard output; -1: closed
  std::string first_line_;
  std::string read_;  // bytes of its output after the last answer
};

}  // namespace kvstore::bench
