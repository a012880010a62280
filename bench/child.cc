#include "bench/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <utility>

#include "bench/report.h"

namespace kvstore::bench {

absl::StatusOr<Child> Child::Start(const std::vector<std::string>& arguments) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) {
    return absl::UnavailableError("cannot make a pipe");
  }
  std::vector<std::string> command = {"kv"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t process = ::fork();
  if (process < 0) return absl::UnavailableError("cannot make a process");
  if (process == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::execv("/proc/self/exe", argv.data());
    ::_exit(127);
  }
  ::close(in[0]);
  ::close(out[1]);
  Child child(process, in[1]);
  for (char c = 0; ::read(out[0], &c, 1) == 1 && c != '\n';) child.first_line_ += c;
  ::close(out[0]);
  if (child.first_line_.empty()) return absl::UnavailableError("a process ended before it was ready");
  return child;
}

Child::Child(Child&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      input_(std::exchange(other.input_, -1)),
      first_line_(std::move(other.first_line_)) {}

Child::~Child() {
  if (process_ < 0) return;
  ::close(input_);
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

uint64_t Child::ResidentBytes() const { return bench::ResidentBytes(std::to_string(process_)); }

}  // namespace kvstore::bench
