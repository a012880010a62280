#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kvstore::bench {

/// Another process, which ends with this one.
class Child {
 public:
  /// This program again. Waits for its first line.
  static absl::StatusOr<Child> Start(const std::vector<std::string>& arguments);
  /// Another program, found by PATH; what it prints is for nobody. If it is not there, it has
  /// ended at once.
  static absl::StatusOr<Child> StartProgram(const std::vector<std::string>& command);
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;

  const std::string& first_line() const { return first_line_; }
  /// It has not ended.
  bool runs() const;
  /// Resident memory in bytes.
  uint64_t ResidentBytes() const;

 private:
  Child(pid_t process, int input) : process_(process), input_(input) {}

  pid_t process_;
  int input_;  // its standard input
  std::string first_line_;
};

}  // namespace kvstore::bench
