#include "backends/rocksdb/reserve.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

namespace kvstore::rocks {
namespace {

/// How often what opening takes is kept, and how often the file must fit into what is free.
constexpr uint64_t kTimes = 4;
/// The latter once it was out, so that writes go on soon.
constexpr uint64_t kTimesAgain = 2;

}  // namespace

void Reserve::Release() {
  const std::lock_guard lock(mutex_);
  out_ = true;
  std::error_code error;
  std::filesystem::remove(file_, error);
}

bool Reserve::Restore(uint64_t needs) {
  const std::lock_guard lock(mutex_);
  bytes_ = std::max(bytes_, kTimes * needs);
  return RestoreLocked();
}

bool Reserve::Restore() {
  const std::lock_guard lock(mutex_);
  return !out_ || RestoreLocked();
}

bool Reserve::RestoreLocked() {
  std::error_code error;
  if (const auto size = std::filesystem::file_size(file_, error); !error && size >= bytes_) {
    out_ = false;
    return true;
  }
  const auto space = std::filesystem::space(file_.parent_path(), error);
  if (error || space.available < (out_ ? kTimesAgain : kTimes) * bytes_) return false;
  const int file = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return false;
  // A file system that cannot keep space ahead, or will not, is done without: writes are not held up for it.
  const bool kept = ::fallocate(file, 0, 0, static_cast<off_t>(bytes_)) == 0;
  ::close(file);
  if (!kept) std::filesystem::remove(file_, error);
  out_ = false;
  return true;
}

}  // namespace kvstore::rocks
