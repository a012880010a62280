#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace kvstore::testing::chaos {

/// A disturbance of a command while it runs.
struct Disturbance {
  std::optional<std::chrono::milliseconds> kill_after;   ///< It gets kill -9 after this time.
  std::optional<std::chrono::milliseconds> pause_after;  ///< It gets SIGSTOP, and SIGCONT `pause` later.
  std::chrono::milliseconds pause{0};
};

/// How a command ended.
struct Outcome {
  int code = -1;        ///< Exit code; -1 if a signal ended it.
  int signal = 0;       ///< The signal that ended it; 0 if none did.
  bool killed = false;  ///< The disturbance killed it.
  bool hung = false;    ///< It had not ended by the deadline, and was killed.
  std::string text;     ///< Its standard output and standard error.
  double seconds = 0;

  bool ok() const { return code == 0; }
  /// Returns a line for the log.
  std::string ToString() const;
};

/// Runs a program to its end, or kills it at the deadline. Thread-safe; the program is killed if the calling
/// thread ends.
Outcome RunBounded(const std::vector<std::string>& command, std::chrono::milliseconds deadline,
                   const Disturbance& disturbance = {});

}  // namespace kvstore::testing::chaos
