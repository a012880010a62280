#include "blobstore/new_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "base/files.h"

namespace kvstore {
namespace {

std::string RandomName() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}", random(), random(), random());
}

bool IsFolder(const Descriptor& folder, const std::string& name) {
  struct stat status {};
  return ::fstatat(folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

absl::Status BlobFileError(const std::filesystem::path& path, std::string_view action, int error) {
  absl::Status status = FileError(path, action, error);
  switch (error) {
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(status.message());
    case ELOOP:
    case ENOTDIR:
    case EISDIR:
      return absl::FailedPreconditionError(status.message());
    default:
      return status;
  }
}

absl::StatusOr<std::vector<std::string>> NamesIn(const Descriptor& folder,
                                                 const std::filesystem::path& path) {
  // The stream of entries closes its own descriptor, and its position is shared with duplicates of it.
  const int again = ::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) return BlobFileError(path, "look into", errno);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(again), &::closedir);
  if (entries == nullptr) {
    const int error = errno;
    ::close(again);
    return BlobFileError(path, "look into", error);
  }
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* const entry = ::readdir(entries.get());
    if (entry == nullptr && errno != 0) return BlobFileError(path, "look into", errno);
    if (entry == nullptr) return names;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
}

absl::StatusOr<NewFile> NewFile::Create(const Descriptor& folder, const std::filesystem::path& path) {
  while (true) {
    const std::string name = RandomName();
    Descriptor file(
        ::openat(folder.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.is_open()) return BlobFileError(path / name, "create", errno);
    if (::flock(file.get(), LOCK_EX) != 0) return BlobFileError(path / name, "lock", errno);
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) return BlobFileError(path / name, "look at", errno);
    // Another process may have removed the file before it was locked.
    if (status.st_nlink > 0) return NewFile(folder, name, std::move(file), path / name);
  }
}

NewFile::~NewFile() {
  if (file_.is_open()) ::unlinkat(folder_->get(), name_.c_str(), 0);
}

absl::Status NewFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return BlobFileError(path_, "write", errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status NewFile::MoveTo(const Descriptor& folder, const std::string& name, bool replace,
                             const std::filesystem::path& target) {
  if (::fsync(file_.get()) != 0) return BlobFileError(path_, "sync", errno);
  // Unlike a rename, a link never replaces what is there. The file's first name is removed with this object.
  const int failed = replace ? ::renameat(folder_->get(), name_.c_str(), folder.get(), name.c_str())
                             : ::linkat(folder_->get(), name_.c_str(), folder.get(), name.c_str(), 0);
  if (failed != 0) {
    const int error = errno;
    if (IsFolder(folder, name)) {
      return absl::FailedPreconditionError(
          fmt::format("cannot put {}: blobs are in a folder of this name", target.string()));
    }
    if (error == EEXIST) return absl::AlreadyExistsError(fmt::format("there is a blob {}", target.string()));
    return BlobFileError(target, "put", error);
  }
  return ::fsync(folder.get()) == 0 ? absl::OkStatus() : BlobFileError(target.parent_path(), "sync", errno);
}

absl::Status RemoveLeftOver(const Descriptor& folder, const std::filesystem::path& path) {
  const auto names = NamesIn(folder, path);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    const Descriptor file(
        ::openat(folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    // A file that cannot be opened was completed meanwhile, or is none of ours.
    if (!file.is_open() || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) continue;
    ::unlinkat(folder.get(), name.c_str(), 0);
  }
  return absl::OkStatus();
}

}  // namespace kvstore
