#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace kvstore::testing::chaos {

/// What is done to a command while it runs.
struct Disturbance {
  std::optional<std::chrono::milliseconds> kill_after;   ///< kill -9.
  std::optional<std::chrono::milliseconds> pause_after;  ///< SIGSTOP, and SIGCONT `pause` later.
  std::chrono::milliseconds pause{0};
};

/// How a command ended.
struct Outcome {
  int code = -1;        ///< Exit code; -1 if a signal ended it.
  int signal = 0;       ///< 0 if none did.
  bool killed = false;  ///< By the disturbance.
  bool hung = false;    ///< It had not ended at the deadline, and was killed.
  std::string text;     ///< Standard output and standard error.
  double seconds = 0;

  bool ok() const { return code == 0; }
  /// For a log.
  std::string ToString() const;
};

/// Runs a program to its end, or to the deadline, whatever it does. By any thread; it goes with its thread.
Outcome RunBounded(const std::vector<std::string>& command, std::chrono::milliseconds deadline,
                   const Disturbance& disturbance = {});

}  // namespace kvstore::testing::chaos
