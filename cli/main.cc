#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "absl/synchronization/mutex.h"
#include "cli/command.h"

namespace {

/// RocksDB keeps its files open: allow as many as this user may have.
void RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int argc, char** argv) {
  RaiseFileLimit();
  // Whatever the umask is: what this makes, its sockets too, is not for other users of the machine.
  ::umask(::umask(S_IRWXO) | S_IRWXO);
  // A reader that went away is an error of a write, not the end of this process in the middle of one.
  std::signal(SIGPIPE, SIG_IGN);
  // Debian builds abseil, which gRPC locks with, for debugging: it would look for deadlocks at each lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  CLI::App app("", "kv");
  kvstore::cli::Globals globals;
  kvstore::cli::AddCommands(app, globals);
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const kvstore::cli::Failure& failure) {
    std::fflush(stdout);
    kvstore::cli::PrintError(failure.status, globals.json);
    return 1;
  } catch (const nlohmann::json::exception&) {
    // A field of what a server sent is of another type. What else the exception says quotes the answer.
    std::fflush(stdout);
    kvstore::cli::PrintError(absl::InternalError("the server's answer is not what this program understands"),
                             globals.json);
    return 1;
  }
}
