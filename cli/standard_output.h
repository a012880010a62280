#pragma once

#include <string_view>

#include "absl/status/status.h"

/// Standard output and standard error, for all commands. A program whose answer is not read to its end, or
/// has no room, must not say that all went well, and must not abort either: standard output that takes no
/// more ends the command by an exception, so that a store is closed in order, and EndOutput says in what way
/// the process ends. Thread-safe.
namespace kvstore::cli {

/// Standard output takes no more; nobody but main catches it, which ends with EndOutput.
struct OutputLost {};

/// Before anything is opened: standard files that are closed are taken, so that no file of a store is opened
/// under such a number and gets what is printed. Reading and writing them fails as before.
void OccupyStandardFiles();

/// Adds to what is buffered. Throws OutputLost.
void WriteOut(std::string_view text);
/// Hands over what is buffered, for whoever reads it while the command goes on. Throws OutputLost.
void FlushOut();
/// For what does not depend on being read: writes and hands over at once, and if that fails, only says so.
absl::Status TryOut(std::string_view text);

/// To standard error. Where that takes nothing there is nobody who could be told.
void WriteErr(std::string_view text);

/// How the process ends that would end with exit code `code`, when all is written that is written. Without
/// trouble that is `code`. Where the reader of standard output has gone and nothing else has failed, it ends
/// by SIGPIPE here, as `cat` does. Where it could not be written for another reason (a full disk) that is
/// told, and the exit code is at least 1.
int EndOutput(int code, bool json);

}  // namespace kvstore::cli
