#include "cli/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/files.h"
#include "cli/command.h"

namespace kvstore::cli {

InputFile::InputFile(const std::string& path)
    : file_(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (file_ < 0)
    throw Failure{absl::NotFoundError(fmt::format("cannot open {}: {}", path, std::strerror(errno)))};
  struct stat status {};
  if (::fstat(file_, &status) != 0) return;
  if (S_ISDIR(status.st_mode)) {
    if (file_ != STDIN_FILENO) ::close(file_);
    throw Failure{FileError(path == "-" ? "standard input" : path, "read", EISDIR)};
  }
  if (!S_ISREG(status.st_mode)) return;
  size_ = static_cast<uint64_t>(status.st_size);
  written_ns_ = static_cast<uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
                static_cast<uint64_t>(status.st_mtim.tv_nsec);
}

InputFile::~InputFile() {
  if (file_ != STDIN_FILENO) ::close(file_);
}

void InputFile::Skip(uint64_t bytes) const {
  if (::lseek(file_, static_cast<off_t>(bytes), SEEK_SET) < 0) {
    throw Failure{
        absl::UnavailableError(fmt::format("cannot go on at byte {}: {}", bytes, std::strerror(errno)))};
  }
}

}  // namespace kvstore::cli
