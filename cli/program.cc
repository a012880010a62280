#include "cli/program.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "absl/synchronization/mutex.h"
#include "cli/log_format.h"
#include "cli/standard_output.h"

namespace kvstore::cli {
namespace {

/// Raises the limit of open files to what this user may have, because RocksDB keeps its files open.
void RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Prints the help, the version or a usage error, by the same functions as all other output; returns the exit
/// code.
int Answer(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = app.exit(error, out, err) == 0 ? 0 : 2;
  WriteErr(err.str());
  WriteOut(out.str());
  return code;
}

/// Executes the command line and returns the exit code, which EndOutput may still raise.
int Run(int argc, char** argv, const std::string& name, void (*add)(CLI::App&, Globals&), Globals& globals) {
  CLI::App app("", name);
  add(app, globals);
  const auto failed = [&globals](const absl::Status& status) {
    // Where standard output and error go to the same place, earlier answers must come before the error.
    std::fflush(stdout);
    PrintError(status, globals.json);
    return 1;
  };
  try {
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return Answer(app, error);
    }
    return 0;
  } catch (const Failure& failure) {
    return failed(failure.status);
  } catch (const OutputLost&) {
    return 0;  // EndOutput decides the exit code.
  } catch (const std::system_error&) {
    // fmt throws this where libraries print.
    if (std::ferror(stdout) == 0) throw;
    return 0;
  } catch (const nlohmann::json::exception&) {
    // A field of a server's answer has another type than expected. The exception's text is dropped, because
    // it quotes the answer.
    return failed(absl::InternalError("the server's answer is not what this program understands"));
  }
}

}  // namespace

int Main(int argc, char** argv, const std::string& name, void (*add)(CLI::App&, Globals&)) {
  OccupyStandardFiles();
  RaiseFileLimit();
  // Whatever the umask is, other users of the machine get no rights on the files and sockets that this
  // process makes.
  ::umask(::umask(S_IRWXO) | S_IRWXO);
  // When the reader of a pipe has gone, the write fails; a signal would end this process in the middle of its
  // work.
  std::signal(SIGPIPE, SIG_IGN);
  // gRPC uses abseil's mutexes, and Debian builds abseil for debugging: without this, each lock would search
  // for deadlocks.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // Standard output is for answers alone. A command logs warnings and errors, and with --verbose more.
  spdlog::set_default_logger(spdlog::stderr_color_mt("kv"));
  spdlog::set_formatter(PrintableLogFormat());
  spdlog::set_level(spdlog::level::warn);
  Globals globals;
  globals.arguments.assign(argv, argv + argc);
  const int code = Run(argc, argv, name, add, globals);
  return EndOutput(code, [&](const absl::Status& status) { PrintError(status, globals.json); });
}

}  // namespace kvstore::cli
