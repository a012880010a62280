#include "base/temporary_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "base/files.h"

namespace kvstore {
namespace {

namespace fs = std::filesystem;

/// How often Make tries again when another process has taken the new folder for one that was left.
constexpr int kAttempts = 10;

/// Opens a folder and locks it. Returns its descriptor, or -1 with errno if a process holds it, it is gone,
/// or it is no folder of this user.
int Lock(const fs::path& path) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return -1;
  struct stat status {};
  int error = 0;
  if (::flock(folder, LOCK_EX | LOCK_NB) != 0 || ::fstat(folder, &status) != 0) {
    error = errno;
  } else if (status.st_uid != ::geteuid()) {
    error = EPERM;
  } else if (status.st_nlink == 0) {
    error = ENOENT;
  }
  if (error == 0) return folder;
  ::close(folder);
  errno = error;
  return -1;
}

void RemoveLeftOver(const fs::path& temporary, std::string_view prefix) {
  std::error_code error;
  for (fs::directory_iterator entry(temporary, error), end; !error && entry != end; entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(prefix)) continue;
    const int lock = Lock(entry->path());
    if (lock < 0) continue;
    std::error_code ignored;
    fs::remove_all(entry->path(), ignored);
    ::close(lock);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<TemporaryFolder>> TemporaryFolder::Make(std::string_view prefix) {
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  if (error) return FileError("the folder of temporary files", "find", error.value());
  RemoveLeftOver(temporary, prefix);
  for (int attempt = 1;; ++attempt) {
    std::string path = (temporary / prefix).string() + "XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return FileError(path, "create", errno);
    if (const int lock = Lock(path); lock >= 0) {
      return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(path, lock));
    }
    if (attempt == kAttempts) return FileError(path, "lock", errno);
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  ::close(lock_);
}

}  // namespace kvstore
