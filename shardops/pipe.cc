#include "shardops/pipe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <utility>

namespace kvstore::shardops {
namespace {

constexpr size_t kBlock = size_t{1} << 20;

/// A file descriptor that is closed when this is destroyed.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    Close();
    fd_ = std::exchange(other.fd_, -1);
    return *this;
  }
  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

std::string ReadAll(int fd) {
  struct stat status {};
  ::fstat(fd, &status);
  std::string text(static_cast<size_t>(status.st_size), '\0');
  const ssize_t size = ::pread(fd, text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

/// A child process that is killed when this is destroyed, or when this process dies.
class Program {
 public:
  /// in, out  The child's standard input and output; -1 to leave it as it is.
  Program(std::vector<std::string> command, int in, int out)
      : name_(command.front()), errors_(::memfd_create("kvstore", MFD_CLOEXEC)) {
    std::vector<char*> argv;
    for (std::string& word : command) argv.push_back(word.data());
    argv.push_back(nullptr);
    process_ = ::fork();
    if (process_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (in >= 0) ::dup2(in, STDIN_FILENO);
    if (out >= 0) ::dup2(out, STDOUT_FILENO);
    ::dup2(errors_.get(), STDERR_FILENO);
    ::execvp(argv[0], argv.data());
    ::_exit(kNotFound);
  }
  ~Program() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Waits until the program ends; INTERNAL with its standard error if it failed.
  absl::Status Join() {
    int result = 0;
    if (process_ <= 0 || ::waitpid(std::exchange(process_, -1), &result, 0) < 0) {
      return absl::InternalError(name_ + ": cannot be started");
    }
    if (WIFEXITED(result) && WEXITSTATUS(result) == 0) return absl::OkStatus();
    if (WIFEXITED(result) && WEXITSTATUS(result) == kNotFound) {
      return absl::FailedPreconditionError(name_ + ": is not installed (Debian: mariadb-client)");
    }
    // The client may print the statement first, which is long.
    const std::string text = ReadAll(errors_.get());
    const size_t error = text.rfind("ERROR ");
    return absl::InternalError(
        fmt::format("{}: {}", name_, error == std::string::npos ? text : text.substr(error)));
  }

 private:
  static constexpr int kNotFound = 127;
  const std::string name_;
  const Descriptor errors_;
  pid_t process_ = -1;
};

bool SendAll(int socket, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(socket, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    data += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

}  // namespace

UnnamedFile::UnnamedFile(const std::string& text) : fd_(::memfd_create("kvstore", 0)) {
  ::fchmod(fd_, S_IRUSR | S_IWUSR);  // some programs refuse a file that others may write
  // If the text cannot be written, the program that reads the file reports what it lacks.
  if (::write(fd_, text.data(), text.size()) < 0) ::ftruncate(fd_, 0);
}

UnnamedFile::~UnnamedFile() {
  if (fd_ >= 0) ::close(fd_);
}

std::string UnnamedFile::path() const { return fmt::format("/proc/self/fd/{}", fd_); }

absl::StatusOr<std::string> Pipe(const std::vector<std::string>& from_program,
                                 const std::vector<std::string>& to_program,
                                 const std::function<bool(uint64_t)>& progress) {
  std::array<int, 2> from{};
  std::array<int, 2> to{};
  if (::pipe2(from.data(), O_CLOEXEC) != 0) return absl::ResourceExhaustedError(std::strerror(errno));
  Descriptor output(from[0]);
  Descriptor output_end(from[1]);
  // A socket, since writing to a pipe whose reader has died would end this process (SIGPIPE).
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, to.data()) != 0) {
    return absl::ResourceExhaustedError(std::strerror(errno));
  }
  Descriptor input(to[0]);
  Descriptor input_end(to[1]);
  Program reading(to_program, input_end.get(), -1);
  Program writing(from_program, -1, output_end.get());
  output_end.Close();
  input_end.Close();
  const auto block = std::make_unique<std::array<char, kBlock>>();
  std::string header;
  uint64_t bytes = 0;
  for (;;) {
    const ssize_t size = ::read(output.get(), block->data(), block->size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    if (header.size() < kPipeHeader) header.append(block->data(), std::min<size_t>(size, kPipeHeader));
    if (!SendAll(input.get(), block->data(), static_cast<size_t>(size))) {
      // The reading program has ended; its standard error says why.
      auto status = reading.Join();
      return status.ok() ? absl::InternalError(to_program.front() + ": ended before it had read everything")
                         : status;
    }
    bytes += static_cast<uint64_t>(size);
    if (progress && !progress(bytes)) return absl::CancelledError("was stopped");
  }
  if (auto status = writing.Join(); !status.ok()) return status;
  input.Close();
  if (auto status = reading.Join(); !status.ok()) return status;
  return header;
}

}  // namespace kvstore::shardops
