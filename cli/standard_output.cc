#include "cli/standard_output.h"

#include <fcntl.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>

#include "base/files.h"
#include "cli/command.h"

namespace kvstore::cli {
namespace {

/// The errno of the first write that failed; 0 if none has.
std::atomic<int>& FirstError() {
  static std::atomic<int> error = 0;
  return error;
}

void Lose(int error) {
  int none = 0;
  // Streams do not always say why; that they failed is what counts.
  FirstError().compare_exchange_strong(none, error != 0 ? error : EIO);
}

absl::Status WriteError(int error) { return FileError("standard output", "write to", error); }

/// Whoever asks hears of the pipe as of any program that it was not told to survive.
int EndByPipeSignal() {
  std::signal(SIGPIPE, SIG_DFL);
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_UNBLOCK, &pipe, nullptr);
  std::raise(SIGPIPE);
  return 128 + SIGPIPE;
}

}  // namespace

void OccupyStandardFiles() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(file, F_GETFD) >= 0 || errno != EBADF) continue;
    // In the direction that nobody uses. The lowest number that is free is this one.
    ::open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void WriteOut(std::string_view text) {
  if (FirstError() != 0) throw OutputLost();
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size()) return;
  Lose(errno);
  throw OutputLost();
}

void FlushOut() {
  if (FirstError() != 0) throw OutputLost();
  errno = 0;
  if (std::fflush(stdout) == 0) return;
  Lose(errno);
  throw OutputLost();
}

absl::Status TryOut(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return {};
  absl::Status status = WriteError(errno != 0 ? errno : EIO);
  // Else the end of the process would try again, and fail.
  ::__fpurge(stdout);
  std::clearerr(stdout);
  return status;
}

void WriteErr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

int EndOutput(int code, bool json) {
  if (FirstError() == 0) {
    errno = 0;
    // Libraries print, too; the help is one's.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) Lose(errno);
  }
  // Some file systems say only at a close that there was no room.
  const int copy = FirstError() == 0 ? ::dup(STDOUT_FILENO) : -1;
  if (copy >= 0 && ::close(copy) != 0 && errno != EINTR) Lose(errno);
  const int error = FirstError();
  if (error == 0) return code;
  if (error == EPIPE) return code != 0 ? code : EndByPipeSignal();
  PrintError(WriteError(error), json);
  return std::max(code, 1);
}

}  // namespace kvstore::cli
