#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kvstore::bench {

/// Another process of this program, which ends with this one.
class Child {
 public:
  /// Starts it, and waits for its first line.
  static absl::StatusOr<Child> Start(const std::vector<std::string>& arguments);
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;

  const std::string& first_line() const { return first_line_; }
  /// Resident memory in bytes.
  uint64_t ResidentBytes() const;

 private:
  Child(pid_t process, int input) : process_(process), input_(input) {}

  pid_t process_;
  int input_;  // its standard input
  std::string first_line_;
};

}  // namespace kvstore::bench
