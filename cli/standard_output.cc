#include "cli/standard_output.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio_ext.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "base/files.h"

namespace kvstore::cli {
namespace {

/// The errno of the first write that failed; 0 if none has.
std::atomic<int>& FirstError() {
  static std::atomic<int> error = 0;
  return error;
}

void RecordLoss(int error) {
  int none = 0;
  // Streams do not always set errno; the failure itself is what counts.
  FirstError().compare_exchange_strong(none, error != 0 ? error : EIO);
}

absl::Status WriteError(int error) { return FileError("standard output", "write to", error); }

/// Ends the process by SIGPIPE, so that its parent sees the same as of a program that does not handle it.
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
    // Opened in the direction that nobody uses; open returns the lowest free number, which is this one.
    ::open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void WriteOut(std::string_view text) {
  if (FirstError() != 0) throw OutputLost();
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size()) return;
  RecordLoss(errno);
  throw OutputLost();
}

void FlushOut() {
  if (FirstError() != 0) throw OutputLost();
  errno = 0;
  if (std::fflush(stdout) == 0) return;
  RecordLoss(errno);
  throw OutputLost();
}

ReaderWatch::ReaderWatch(std::function<void()> gone) : end_(::eventfd(0, EFD_CLOEXEC)) {
  thread_ = std::thread([this, gone = std::move(gone)] {
    // poll reports errors without being asked for them; a pipe whose reader has gone is one.
    std::array<pollfd, 2> files = {{{STDOUT_FILENO, 0, 0}, {end_, POLLIN, 0}}};
    while (::poll(files.data(), files.size(), -1) < 0 && errno == EINTR) continue;
    if (files[1].revents != 0 || (files[0].revents & (POLLERR | POLLHUP)) == 0) return;
    RecordLoss(EPIPE);
    gone();
  });
}

ReaderWatch::~ReaderWatch() {
  const uint64_t one = 1;
  // This cannot block: nothing else is written to the eventfd.
  [[maybe_unused]] const auto written = ::write(end_, &one, sizeof(one));
  thread_.join();
  ::close(end_);
}

absl::Status TryOut(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return {};
  absl::Status status = WriteError(errno != 0 ? errno : EIO);
  // Otherwise EndOutput would write the same text again, and fail.
  ::__fpurge(stdout);
  std::clearerr(stdout);
  return status;
}

void WriteErr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

int EndOutput(int code, const std::function<void(const absl::Status&)>& tell) {
  if (FirstError() == 0) {
    errno = 0;
    // Libraries print, too: the help comes from one.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) RecordLoss(errno);
  }
  // Some file systems report a full disk only at a close.
  const int copy = FirstError() == 0 ? ::dup(STDOUT_FILENO) : -1;
  if (copy >= 0 && ::close(copy) != 0 && errno != EINTR) RecordLoss(errno);
  const int error = FirstError();
  if (error == 0) return code;
  if (error == EPIPE) return code != 0 ? code : EndByPipeSignal();
  tell(WriteError(error));
  return std::max(code, 1);
}

}  // namespace kvstore::cli
