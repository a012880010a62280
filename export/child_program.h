#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "blobstore/descriptor.h"

namespace kvstore::exports {

/// A program that runs beside this one. Externally synchronised.
class ChildProgram {
 public:
  enum class Errors : uint8_t {
    kKept,    ///< It is kept for the error of Wait.
    kShared,  ///< It is this process's own; for a program that may print much.
  };

  /// Starts a program.
  ///
  /// command  its path, and its arguments.
  /// in, out  descriptors that become its standard input and output; all others stay with this process.
  /// errors   what becomes of its standard error.
  ///
  /// UNAVAILABLE with the reason.
  static absl::StatusOr<ChildProgram> Start(const std::vector<std::string>& command, int in, int out,
                                            Errors errors = Errors::kKept);
  ChildProgram(ChildProgram&& other) noexcept;
  ChildProgram& operator=(ChildProgram&&) = delete;
  /// Kills it if it runs.
  ~ChildProgram();

  /// Waits until it has ended, which it must do soon because it has closed its output. Returns OK if its exit
  /// code is 0; else INVALID_ARGUMENT with the beginning of what was kept of standard error, or UNAVAILABLE
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
