#include <fmt/format.h>
#include <sys/resource.h>

#include <csignal>

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
  }
}
