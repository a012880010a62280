#include "shardops/program.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>
#include <utility>

namespace kvstore::shardops {
namespace {

/// The exit code of a child that found no such program.
constexpr int kNotFound = 127;
/// As much of the end of a program's standard error is told.
constexpr size_t kMaxToldBytes = 2'000;

std::string ReadErrors(int fd) {
  struct stat status {};
  ::fstat(fd, &status);
  std::string text(static_cast<size_t>(status.st_size), '\0');
  const ssize_t size = ::pread(fd, text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

/// The Debian package that has a program.
std::string_view PackageOf(std::string_view program) {
  if (program == "mariadb-backup" || program == "mbstream") return "mariadb-backup";
  return program == "mariadbd" ? "mariadb-server" : "mariadb-client";
}

}  // namespace

Program::Program(std::vector<std::string> command, int in, int out)
    : name_(command.front()), errors_(::memfd_create("kvstore", MFD_CLOEXEC)) {
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  process_ = ::fork();
  if (process_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (in >= 0) ::dup2(in, STDIN_FILENO);
  if (out >= 0) ::dup2(out, STDOUT_FILENO);
  ::dup2(errors_, STDERR_FILENO);
  ::execvp(argv[0], argv.data());
  ::_exit(kNotFound);
}

Program::~Program() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  if (errors_ >= 0) ::close(errors_);
}

absl::Status Program::Join() {
  int result = 0;
  if (process_ <= 0) return absl::InternalError(name_ + ": cannot be started");
  while (::waitpid(process_, &result, 0) < 0) {
    if (errno != EINTR) return absl::InternalError(name_ + ": cannot be waited for");
  }
  process_ = -1;
  return StatusOf(result);
}

std::optional<absl::Status> Program::TryJoin() {
  int result = 0;
  if (process_ <= 0) return absl::InternalError(name_ + ": cannot be started");
  if (::waitpid(process_, &result, WNOHANG) != process_) return std::nullopt;
  process_ = -1;
  return StatusOf(result);
}

void Program::Terminate() {
  if (process_ > 0) ::kill(process_, SIGTERM);
}

absl::Status Program::StatusOf(int result) const {
  if (WIFEXITED(result) && WEXITSTATUS(result) == 0) return absl::OkStatus();
  if (WIFEXITED(result) && WEXITSTATUS(result) == kNotFound) {
    return absl::FailedPreconditionError(
        fmt::format("{}: is not installed (Debian: {})", name_, PackageOf(name_)));
  }
  std::string text = ReadErrors(errors_);
  // A client may print the statement first, which is long.
  const size_t error = text.rfind("ERROR ");
  if (error != std::string::npos) text.erase(0, error);
  if (text.size() > kMaxToldBytes) text = "..." + text.substr(text.size() - kMaxToldBytes);
  if (WIFSIGNALED(result)) text += fmt::format(" (ended by signal {})", WTERMSIG(result));
  return absl::InternalError(fmt::format("{}: {}", name_, text));
}

}  // namespace kvstore::shardops
