#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace kvstore::shardops {

/// A program that runs as a child of this process. It is killed when this object is destroyed, when the
/// thread that started it ends, and when this process dies. Externally synchronised.
class Program {
 public:
  /// Starts it.
  ///
  /// command  Its words; the first one is looked up in the PATH. It must hold no secrets, which every user of
  ///          the machine could read.
  /// in, out  The child's standard input and output; -1 to leave it as it is.
  Program(std::vector<std::string> command, int in, int out);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Waits until the program ends. INTERNAL with the end of its standard error if it failed;
  /// FAILED_PRECONDITION, with the package that has it, if it is not installed. Call it once.
  absl::Status Join();
  /// Returns what Join would if the program has ended; nullopt while it runs. Once it has returned a status,
  /// there is nothing left to join.
  std::optional<absl::Status> TryJoin();
  /// Asks the program to end (SIGTERM).
  void Terminate();

 private:
  absl::Status StatusOf(int result) const;

  const std::string name_;
  const int errors_;  // a file without a name for its standard error
  pid_t process_ = -1;
};

}  // namespace kvstore::shardops
