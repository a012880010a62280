#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace kvstore {

absl::Status FileError(const std::filesystem::path& path, std::string_view action, int error) {
  const std::string message = fmt::format("cannot {} {}: {}", action, path.string(), std::strerror(error));
  return error == ENOSPC || error == EDQUOT ? absl::ResourceExhaustedError(message)
                                            : absl::UnavailableError(message);
}

absl::StatusOr<int> OpenForWriting(const std::filesystem::path& path, int flags) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
  if (file >= 0) return file;
  if (errno == ELOOP) {
    return absl::UnavailableError(
        fmt::format("cannot write {}: it is a symbolic link, which is not followed", path.string()));
  }
  return FileError(path, (flags & O_EXCL) != 0 ? "create" : "write", errno);
}

absl::Status WriteAll(int file, const std::filesystem::path& path, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(path, "write", errno);
    text.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

namespace {

absl::Status WriteAndSync(const std::filesystem::path& path, std::string_view text) {
  // The file may be left over from an interrupted attempt, or be a link that somebody put there to have its
  // target written.
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return FileError(path, "remove", errno);
  const auto file = OpenForWriting(path, O_EXCL);
  if (!file.ok()) return file.status();
  absl::Status status = WriteAll(*file, path, text);
  if (status.ok() && ::fsync(*file) != 0) status = FileError(path, "sync", errno);
  ::close(*file);
  return status;
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    const int error = errno;
    const absl::Status status = FileError(path, "read", error);
    return error == ENOENT ? absl::NotFoundError(status.message()) : status;
  }
  std::string text;
  std::array<char, size_t{64} << 10> buffer{};
  ssize_t size = 0;
  do {
    size = ::read(file, buffer.data(), buffer.size());
    if (size > 0) text.append(buffer.data(), static_cast<size_t>(size));
  } while (size > 0 || (size < 0 && errno == EINTR));
  const int error = errno;
  ::close(file);
  if (size < 0) return FileError(path, "read", error);
  return text;
}

absl::Status RenameFile(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return FileError(to, "replace", errno);
  const int folder = ::open(to.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return FileError(to.parent_path(), "open", errno);
  const int synced = ::fsync(folder);
  const int error = errno;
  ::close(folder);
  return synced == 0 ? absl::OkStatus() : FileError(to.parent_path(), "sync", error);
}

absl::Status ReplaceFile(const std::filesystem::path& path, std::string_view text) {
  const std::filesystem::path temporary = path.string() + ".new";
  if (auto status = WriteAndSync(temporary, text); !status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  return RenameFile(temporary, path);
}

}  // namespace kvstore
