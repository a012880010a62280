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
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;

  const std::string& first_line() const { return first_line_; }
  /// Returns whether the process has not ended.
  bool runs() const;
  /// Returns its resident memory in bytes.
  uint64_t ResidentBytes() const;

 private:
  Child(pid_t process, int input) : process_(process), input_(input) {}

  pid_t process_;
  int input_;  // its standard input
  std::string first_line_;
};

}  // namespace kvstore::bench
