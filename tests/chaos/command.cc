#include "tests/chaos/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "tests/support/temp_dir.h"

namespace kvstore::testing::chaos {
namespace {

using Clock = std::chrono::steady_clock;

/// Starts the program, with its output in `file`.
pid_t Start(const std::vector<std::string>& command, const std::string& file) {
  std::vector<char*> argv;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int out = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

}  // namespace

std::string Outcome::ToString() const {
  std::string how = fmt::format("exit {}", code);
  if (hung) {
    how = "HUNG";
  } else if (killed) {
    how = "killed by the test";
  } else if (signal != 0) {
    how = fmt::format("signal {}", signal);
  }
  std::string shown = text.substr(0, 1500);
  while (!shown.empty() && shown.back() == '\n') shown.pop_back();
  for (char& c : shown) {
    if (c == '\n') c = '|';
  }
  return fmt::format("{} after {:.1f} s: {}", how, seconds, shown);
}

Outcome RunBounded(const std::vector<std::string>& command, std::chrono::milliseconds deadline,
                   const Disturbance& disturbance) {
  const TempDir dir;
  const std::string file = (dir / "out").string();
  const auto begin = Clock::now();
  Outcome outcome;
  const pid_t child = Start(command, file);
  enum class Paused { kNotYet, kNow, kOver } paused = Paused::kNotYet;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) != child) {
    const auto age = Clock::now() - begin;
    if (disturbance.pause_after && paused == Paused::kNotYet && age >= *disturbance.pause_after) {
      ::kill(child, SIGSTOP);
      paused = Paused::kNow;
    } else if (paused == Paused::kNow && age >= *disturbance.pause_after + disturbance.pause) {
      ::kill(child, SIGCONT);
      paused = Paused::kOver;
    }
    if (!outcome.killed && disturbance.kill_after && age >= *disturbance.kill_after) {
      outcome.killed = true;
      ::kill(child, SIGKILL);
    }
    if (!outcome.hung && age >= deadline) {
      outcome.hung = true;
      ::kill(child, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  outcome.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (WIFSIGNALED(status)) {
    outcome.signal = WTERMSIG(status);
  } else {
    outcome.code = WEXITSTATUS(status);
    outcome.killed = false;
  }
  std::ifstream in(file);
  outcome.text.assign(std::istreambuf_iterator<char>(in), {});
  return outcome;
}

}  // namespace kvstore::testing::chaos
