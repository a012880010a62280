#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

/// Child processes of tests.
namespace kvstore::testing {

/// How a process ended.
struct Exit {
  int code = -1;   ///< Exit code; -1 if a signal ended it.
  int signal = 0;  ///< The signal that ended it; 0 if none did.
};

/// Runs `body` in a forked process and returns its ID. The child ends with the code that `body` returns,
/// without running the parent's destructors. Throws std::logic_error if the caller has other threads.
pid_t Fork(const std::function<int()>& body);
Exit Wait(pid_t child);
/// Returns how `child` ended, or nullopt while it runs. Once it has ended, it is no child any more.
std::optional<Exit> Ended(pid_t child);
/// kill -9, and waits until it is gone.
void Kill(pid_t child);

/// The output of a program, and how it ended.
struct Output {
  int code = -1;  ///< Exit code; 128 + N if signal N ended it.
  std::string out;
  std::string err;
};

/// Runs a program with `input` on its standard input, to its end.
Output RunProgram(const std::vector<std::string>& command, const std::string& input = "");

/// Starts a program whose standard output goes to `file`, and returns its ID. It is killed with its parent.
pid_t ForkProgram(const std::vector<std::string>& command, const std::string& file);

/// Waits until `serves` says that the server `process`, which writes to the file `log`, serves. If the
/// process ends before, or does not serve within five minutes, it is gone, `process` is -1, and
/// std::runtime_error with how it ended and the end of its log is thrown.
void AwaitServer(pid_t& process, const std::string& name, const std::string& log,
                 const std::function<bool()>& serves);

}  // namespace kvstore::testing
