#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "absl/synchronization/mutex.h"
#include "cli/command.h"
#include "cli/standard_output.h"

namespace {

/// RocksDB keeps its files open: allow as many as this user may have.
void RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Help, a version or what is wrong with the arguments, through the same hands as all other output.
int Answer(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = app.exit(error, out, err) == 0 ? 0 : 2;
  kvstore::cli::WriteErr(err.str());
  kvstore::cli::WriteOut(out.str());
  return code;
}

/// Carries out what the arguments say; the exit code, as far as it does not depend on the output.
int Run(int argc, char** argv, kvstore::cli::Globals& globals) {
  CLI::App app("", "kv");
  kvstore::cli::AddCommands(app, globals);
  const auto failed = [&globals](const absl::Status& status) {
    // What was answered before stands before the error where both go to one place.
    std::fflush(stdout);
    kvstore::cli::PrintError(status, globals.json);
    return 1;
  };
  try {
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return Answer(app, error);
    }
    return 0;
  } catch (const kvstore::cli::Failure& failure) {
    return failed(failure.status);
  } catch (const kvstore::cli::OutputLost&) {
    return 0;  // EndOutput knows better
  } catch (const std::system_error&) {
    // What fmt throws where libraries print.
    if (std::ferror(stdout) == 0) throw;
    return 0;
  } catch (const nlohmann::json::exception&) {
    // A field of what a server sent is of another type. What else the exception says quotes the answer.
    return failed(absl::InternalError("the server's answer is not what this program understands"));
  }
}

}  // namespace

int main(int argc, char** argv) {
  kvstore::cli::OccupyStandardFiles();
  RaiseFileLimit();
  // Whatever the umask is: what this makes, its sockets too, is not for other users of the machine.
  ::umask(::umask(S_IRWXO) | S_IRWXO);
  // A reader that went away is an error of a write, not the end of this process in the middle of one.
  std::signal(SIGPIPE, SIG_IGN);
  // Debian builds abseil, which gRPC locks with, for debugging: it would look for deadlocks at each lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  kvstore::cli::Globals globals;
  const int code = Run(argc, argv, globals);
  return kvstore::cli::EndOutput(code, globals.json);
}
