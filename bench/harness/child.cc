#include "bench/harness/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "bench/harness/report.h"

namespace kvstore::bench {

namespace {

/// The number of a process, and our ends of the pipes of its standard input and output.
struct Started {
  pid_t process = -1;
  int input = -1;
  int output = -1;
};

/// program  a path, or a name to be found by PATH.
absl::StatusOr<Started> Fork(const char* program, std::vector<std::string> command) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) {
    return absl::UnavailableError("cannot make a pipe");
  }
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  // A write to a child that has ended must be an error (see Ask), not the end of this process.
  std::signal(SIGPIPE, SIG_IGN);
  const pid_t process = ::fork();
  if (process < 0) return absl::UnavailableError("cannot make a process");
  if (process == 0) {
    std::signal(SIGPIPE, SIG_DFL);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::execvp(program, argv.data());
    ::_exit(127);
  }
  ::close(in[0]);
  ::close(out[1]);
  return Started{process, in[1], out[0]};
}

}  // namespace

absl::StatusOr<Child> Child::Start(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto started = Fork((self.parent_path() / program).c_str(), std::move(command));
  if (!started.ok()) return started.status();
  Child child(started->process, started->input, -1);
  for (char c = 0; ::read(started->output, &c, 1) == 1 && c != '\n';) child.first_line_ += c;
  ::close(started->output);
  if (child.first_line_.empty()) return absl::UnavailableError(program + " ended before it was ready");
  return child;
}

absl::StatusOr<Child> Child::StartProgram(const std::vector<std::string>& command) {
  const auto started = Fork(command.at(0).c_str(), command);
  if (!started.ok()) return started.status();
  ::close(started->output);
  return Child(started->process, started->input, -1);
}

absl::StatusOr<Child> Child::StartAnswering(const std::vector<std::string>& command) {
  const auto started = Fork(command.at(0).c_str(), command);
  if (!started.ok()) return started.status();
  return Child(started->process, started->input, started->output);
}

absl::StatusOr<std::string> Child::Ask(const std::string& line) {
  const auto ended = [] { return absl::UnavailableError("a child process ended before it had answered"); };
  std::string left = line + '\n';
  while (!left.empty()) {
    const ssize_t written = ::write(input_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return ended();
    left.erase(0, static_cast<size_t>(written));
  }
  size_t searched = 0;
  while (true) {
    const size_t end = read_.find('\n', searched);
    if (end != std::string::npos) {
      std::string answer = read_.substr(0, end);
      read_.erase(0, end + 1);
      return answer;
    }
    searched = read_.size();
    std::array<char, 65'536> piece;
    const ssize_t bytes = ::read(output_, piece.data(), piece.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return ended();
    read_.append(piece.data(), static_cast<size_t>(bytes));
  }
}

bool Child::runs() const {
  siginfo_t ended{};
  return ::waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         ended.si_pid == 0;
}

Child::Child(Child&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      input_(std::exchange(other.input_, -1)),
      output_(std::exchange(other.output_, -1)),
      first_line_(std::move(other.first_line_)),
      read_(std::move(other.read_)) {}

Child::~Child() {
  if (process_ < 0) return;
  ::close(input_);
  if (output_ >= 0) ::close(output_);
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

uint64_t Child::ResidentBytes() const { return bench::ResidentBytes(std::to_string(process_)); }

}  // namespace kvstore::bench
