#include "backends/rocksdb/engine/reserve.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

namespace kvstore::rocks {
namespace {

/// The size of the file is so many times what an open needs, and so many times that size must be free on the
/// disk.
constexpr uint64_t kTimes = 4;
/// The latter after a release, less, so that writes are accepted again soon.
constexpr uint64_t kTimesAgain = 2;

}  // namespace

void Reserve::Release() {
  const MutexLock lock(mutex_);
  released_ = true;
  std::error_code error;
  std::filesystem::remove(file_, error);
}

bool Reserve::Restore(uint64_t needs) {
  const MutexLock lock(mutex_);
  bytes_ = std::max(bytes_, kTimes * needs);
  return RestoreLocked();
}

bool Reserve::Restore() {
  const MutexLock lock(mutex_);
  return !released_ || RestoreLocked();
}

bool Reserve::RestoreLocked() {
  std::error_code error;
  if (const auto size = std::filesystem::file_size(file_, error); !error && size >= bytes_) {
    released_ = false;
    return true;
  }
  const auto space = std::filesystem::space(file_.parent_path(), error);
  if (error || space.available < (released_ ? kTimesAgain : kTimes) * bytes_) return false;
  const int file = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return false;
  // If the file system cannot or will not allocate space ahead, the store goes without a reserve, and accepts
  // writes.
  const bool kept = ::fallocate(file, 0, 0, static_cast<off_t>(bytes_)) == 0;
  ::close(file);
  if (!kept) std::filesystem::remove(file_, error);
  released_ = false;
  return true;
}

}  // namespace kvstore::rocks
