#include "tests/support/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace kvstore::testing {
namespace {

/// A pipe whose ends close themselves.
struct Pipe {
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  }
  ~Pipe() {
    CloseRead();
    CloseWrite();
  }
  void CloseRead() { Close(ends[0]); }
  void CloseWrite() { Close(ends[1]); }
  static void Close(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
  std::array<int, 2> ends{-1, -1};
};

/// Reads what has arrived; closes the pipe at its end.
void Drain(Pipe& pipe, std::string& into) {
  std::array<char, 65536> buffer{};
  const ssize_t bytes = ::read(pipe.ends[0], buffer.data(), buffer.size());
  if (bytes > 0) {
    into.append(buffer.data(), static_cast<size_t>(bytes));
  } else if (bytes == 0 || errno != EINTR) {
    pipe.CloseRead();
  }
}

/// Returns the words as exec takes them. Valid as long as `command`.
std::vector<char*> Arguments(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  return argv;
}

/// Returns the number of threads of this process, without ThreadSanitizer's own.
size_t Threads() {
#ifdef __SANITIZE_THREAD__
  return 1;
#else
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
#endif
}

/// Takes what waitpid gives.
Exit ExitOf(int status) {
  if (WIFSIGNALED(status)) return {-1, WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

/// Returns the last of what a file has.
std::string EndOf(const std::string& file) {
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  constexpr size_t kLimit = 4'000;
  return text.size() <= kLimit ? text : text.substr(text.size() - kLimit);
}

}  // namespace

pid_t Fork(const std::function<int()>& body) {
  if (Threads() > 1)
    throw std::logic_error("Fork: other threads are running, whose locks the child would inherit");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child != 0) return child;
  const int code = body();
  std::fflush(nullptr);
  ::_exit(code);
}

Exit Wait(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return ExitOf(status);
}

std::optional<Exit> Ended(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, WNOHANG) != child) return std::nullopt;
  return ExitOf(status);
}

void Kill(pid_t child) {
  ::kill(child, SIGKILL);
  Wait(child);
}

Output RunProgram(const std::vector<std::string>& command, const std::string& input) {
  Pipe in;
  Pipe out;
  Pipe err;
  const std::vector<char*> argv = Arguments(command);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child == 0) {
    ::dup2(in.ends[0], STDIN_FILENO);
    ::dup2(out.ends[1], STDOUT_FILENO);
    ::dup2(err.ends[1], STDERR_FILENO);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  in.CloseRead();
  out.CloseWrite();
  err.CloseWrite();
  ::fcntl(in.ends[1], F_SETFL, O_NONBLOCK);
  // A program that ends early closes its input; writing to it must not kill the test (SIGPIPE).
  ::signal(SIGPIPE, SIG_IGN);

  Output output;
  size_t sent = 0;
  while (out.ends[0] >= 0 || err.ends[0] >= 0) {
    if (sent == input.size()) in.CloseWrite();
    std::array<pollfd, 3> polled{
        {{in.ends[1], POLLOUT, 0}, {out.ends[0], POLLIN, 0}, {err.ends[0], POLLIN, 0}}};
    if (::poll(polled.data(), polled.size(), -1) < 0) continue;
    if (polled[0].revents != 0) {
      const ssize_t bytes = ::write(in.ends[1], input.data() + sent, input.size() - sent);
      if (bytes > 0) sent += static_cast<size_t>(bytes);
      if (bytes < 0 && errno != EAGAIN && errno != EINTR) sent = input.size();
    }
    if (polled[1].revents != 0) Drain(out, output.out);
    if (polled[2].revents != 0) Drain(err, output.err);
  }
  const Exit exit = Wait(child);
  output.code = exit.signal != 0 ? 128 + exit.signal : exit.code;
  return output;
}

pid_t ForkProgram(const std::vector<std::string>& command, const std::string& file) {
  const std::vector<char*> argv = Arguments(command);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), STDOUT_FILENO);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

void AwaitServer(pid_t& process, const std::string& name, const std::string& log,
                 const std::function<bool()>& serves) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (!serves()) {
    const std::optional<Exit> ended = Ended(process);
    if (ended || std::chrono::steady_clock::now() > deadline) {
      if (!ended) Kill(process);
      process = -1;
      const std::string how = !ended               ? "it is too slow"
                              : ended->signal != 0 ? "signal " + std::to_string(ended->signal)
                                                   : "exit code " + std::to_string(ended->code);
      throw std::runtime_error(name + " does not start (" + how + "): " + EndOf(log));
    }
    ::usleep(20'000);
  }
}

}  // namespace kvstore::testing
