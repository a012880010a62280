#pragma once

#include <functional>
#include <string_view>
#include <thread>

#include "absl/status/status.h"

/// Standard output and standard error, for all commands. A program whose output is not read to its end, or
/// finds no space on the disk, must neither report success nor abort. When standard output can no longer be
/// written, the command ends by an exception, so that the store is closed in order, and EndOutput decides how
/// the process ends. Thread-safe.
namespace kvstore::cli {

/// Thrown when standard output can no longer be written. Only main catches it, and ends with EndOutput.
struct OutputLost {};

/// Occupies those of the three standard descriptors that are closed. Call it before anything is opened:
/// otherwise a file of the store could get such a number, and would receive what is printed. Reading and
/// writing these descriptors fails as before.
void OccupyStandardFiles();

/// Appends to the buffer of standard output. Throws OutputLost.
void WriteOut(std::string_view text);
/// Writes the buffer out, for somebody who reads it while the command continues. Throws OutputLost.
void FlushOut();
/// Notices, while it exists, that the reader of standard output has gone; standard output is lost then. For
/// commands that may print nothing for long: `kv shards watch | head -1`. It works for a pipe or a socket; a
/// file or a terminal has no reader that could go.
class ReaderWatch {
 public:
  /// gone  called once, on another thread, when the reader has gone.
  explicit ReaderWatch(std::function<void()> gone);
  ~ReaderWatch();
  ReaderWatch(const ReaderWatch&) = delete;
  ReaderWatch& operator=(const ReaderWatch&) = delete;

 private:
  int end_ = -1;  // an eventfd
  std::thread thread_;
};

/// Writes at once, for text that need not be read; returns an error if that fails, and the command continues.
absl::Status TryOut(std::string_view text);

/// Writes to standard error. Failures are ignored: there is nobody to report them to.
void WriteErr(std::string_view text);

/// Writes out the remaining output and returns the exit code of a process that would otherwise end with
/// `code`. If everything was written, that is `code`. If the reader of standard output has gone and nothing
/// else has failed, the process ends here by SIGPIPE, as `cat` does. If standard output could not be written
/// for another reason (a full disk), this is reported, and the exit code is at least 1.
///
/// tell  prints an error on standard error.
int EndOutput(int code, const std::function<void(const absl::Status&)>& tell);

}  // namespace kvstore::cli
