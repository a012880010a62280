#include "shardops/pipe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "shardops/program.h"

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
    if (progress && !progress(bytes))
      return absl::CancelledError("was stopped: run the command again to go on");
  }
  if (auto status = writing.Join(); !status.ok()) return status;
  input.Close();
  if (auto status = reading.Join(); !status.ok()) return status;
  return header;
}

}  // namespace kvstore::shardops
