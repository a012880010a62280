#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "blobstore/descriptor.h"

namespace kvstore::exports {

/// A program that runs beside this one, and whose standard error is kept for the error that it may end with.
/// Externally synchronised.
class ChildProgram {
 public:
  /// Starts a program.
  ///
  /// command  its path, and its arguments.
  /// in, out  descriptors that become its standard input and output; all others stay with this process.
  ///
  /// UNAVAILABLE with the reason.
  static absl::StatusOr<ChildProgram> Start(const std::vector<std::string>& command, int in, int out);
  ChildProgram(ChildProgram&& other) noexcept;
  ChildProgram& operator=(ChildProgram&&) = delete;
  /// Kills it if it runs.
  ~ChildProgram();

  /// Waits until it has ended, which it must do soon because it has closed its output. Returns OK if its exit
  /// code is 0; else INVALID_ARGUMENT with the beginning of what it printed on standard error, or UNAVAILABLE
  /// if a signal ended it, or if it has not ended within 30 s. Ends with the call's deadline, and when it is
  /// cancelled. Call it once.
  absl::Status Wait();

 private:
  ChildProgram(std::string name, pid_t process, Descriptor errors)
      : name_(std::move(name)), process_(process), errors_(std::move(errors)) {}

  std::string name_;
  pid_t process_ = -1;  // -1: it has ended
  Descriptor errors_;
};

}  // namespace kvstore::exports
