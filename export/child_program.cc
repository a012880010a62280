#include "export/child_program.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "kvstore_api/call_scope.h"

namespace kvstore::exports {
namespace {

/// A message of the program is no longer.
constexpr size_t kMaxMessageBytes = 2000;
constexpr std::chrono::milliseconds kMostPause{20};
/// A program that has closed its output ends within this time, or hangs.
constexpr std::chrono::seconds kMostWait{30};

absl::Status CannotStart(const std::string& program, int error) {
  return absl::UnavailableError(fmt::format("cannot start {}: {}", program, std::strerror(error)));
}

/// The descriptors and signals that a child process begins with, for posix_spawn.
class SpawnSettings {
 public:
  SpawnSettings() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  ~SpawnSettings() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  void SetFile(int file, int as) { ::posix_spawn_file_actions_adddup2(&actions_, file, as); }
  /// A library may have opened files that others would inherit.
  void CloseOthers() { ::posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1); }
  /// This thread may have blocked signals, or this process ignore SIGPIPE, which would end the child
  /// otherwise.
  void AllowSignals() {
    sigset_t none;
    sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    sigset_t pipes = none;
    sigaddset(&pipes, SIGPIPE);
    ::posix_spawnattr_setsigdefault(&attributes_, &pipes);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

/// The beginning of what a program has printed, without the end of its last line.
std::string MessageIn(const Descriptor& errors) {
  if (!errors.is_open()) return "";
  std::string text(kMaxMessageBytes, '\0');
  const ssize_t size = ::pread(errors.get(), text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

absl::StatusOr<ChildProgram> ChildProgram::Start(const std::vector<std::string>& command, int in, int out,
                                                 Errors errors_go) {
  Descriptor errors;
  if (errors_go == Errors::kKept) {
    errors = Descriptor(::memfd_create("errors", MFD_CLOEXEC));
    if (!errors.is_open()) return CannotStart(command[0], errno);
  }
  SpawnSettings settings;
  settings.SetFile(in, STDIN_FILENO);
  settings.SetFile(out, STDOUT_FILENO);
  if (errors.is_open()) settings.SetFile(errors.get(), STDERR_FILENO);
  settings.CloseOthers();
  settings.AllowSignals();
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t process = -1;
  const int error = ::posix_spawn(&process, command[0].c_str(), settings.actions(), settings.attributes(),
                                  arguments.data(), environ);
  if (error != 0) return CannotStart(command[0], error);
  return ChildProgram(std::filesystem::path(command[0]).filename().string(), process, std::move(errors));
}

ChildProgram::ChildProgram(ChildProgram&& other) noexcept
    : name_(std::move(other.name_)),
      process_(std::exchange(other.process_, -1)),
      errors_(std::move(other.errors_)) {}

ChildProgram::~ChildProgram() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

absl::Status ChildProgram::Wait() {
  int status = 0;
  const auto begun = std::chrono::steady_clock::now();
  for (std::chrono::milliseconds pause{1};; pause = std::min(2 * pause, kMostPause)) {
    const pid_t ended = ::waitpid(process_, &status, WNOHANG);
    if (ended == process_) break;
    if (ended < 0 && errno != EINTR) {
      return absl::UnavailableError(fmt::format("cannot wait for {}: {}", name_, std::strerror(errno)));
    }
    if (auto call = CheckCall(); !call.ok()) return call;
    if (std::chrono::steady_clock::now() - begun > kMostWait) {
      return absl::UnavailableError(
          fmt::format("{} has closed its output {} s ago, and does not end", name_, kMostWait.count()));
    }
    std::this_thread::sleep_for(pause);
  }
  process_ = -1;
  if (WIFSIGNALED(status)) {
    return absl::UnavailableError(fmt::format("{} was ended by signal {}", name_, WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) == 0) return absl::OkStatus();
  const std::string message = MessageIn(errors_);
  return absl::InvalidArgumentError(
      message.empty() ? fmt::format("{} has ended with exit code {}", name_, WEXITSTATUS(status))
                      : fmt::format("{}: {}", name_, message));
}

}  // namespace kvstore::exports
