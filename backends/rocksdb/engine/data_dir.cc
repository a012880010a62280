#include "backends/rocksdb/engine/data_dir.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <string>
#include <utility>

#include "base/files.h"

namespace kvstore::rocks {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "kvstore format ";
constexpr int kFormat = 1;

std::string ReadLine(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

absl::Status CheckFormat(const fs::path& path) {
  const auto text = ReadFile(path / "KVSTORE");
  if (!text.ok()) return text.status();
  const std::string line = text->substr(0, text->find('\n'));
  int format = 0;
  const bool ours =
      line.starts_with(kMagic) &&
      std::from_chars(line.data() + kMagic.size(), line.data() + line.size(), format).ec == std::errc();
  if (!ours) {
    return absl::FailedPreconditionError(
        fmt::format("{} does not say that this is a KVStore directory; nothing was changed",
                    (path / "KVSTORE").string()));
  }
  if (format > kFormat) {
    return absl::FailedPreconditionError(fmt::format(
        "{} has format {}, written by a newer version; this one reads up to {}. Nothing was changed",
        path.string(), format, kFormat));
  }
  return absl::OkStatus();
}

/// Returns whether `path` holds a store. Fails if it holds anything else, or if there is nothing and `create`
/// is not set.
absl::StatusOr<bool> Inspect(const fs::path& path, bool create) {
  std::error_code error;
  const fs::file_status file = fs::status(path, error);
  if (file.type() == fs::file_type::not_found) {
    if (create) return false;
    return absl::NotFoundError(fmt::format("there is no store at {}", path.string()));
  }
  if (error) return FileError(path, "inspect", error.value());
  if (file.type() != fs::file_type::directory) {
    return absl::FailedPreconditionError(fmt::format("{} is not a directory", path.string()));
  }
  if (fs::exists(path / "KVSTORE", error)) {
    if (auto status = CheckFormat(path); !status.ok()) return status;
    return true;
  }
  if (error) return FileError(path, "list", error.value());
  fs::directory_iterator entries(path, error);
  if (error) return FileError(path, "list", error.value());
  for (const fs::directory_entry& entry : entries) {
    // A creation that was interrupted leaves these two behind.
    const std::string name = entry.path().filename();
    if (name == "LOCK" || name == "KVSTORE.new") continue;
    return absl::FailedPreconditionError(
        fmt::format("{} is not a KVStore directory: it holds '{}' and no KVSTORE file; nothing was changed",
                    path.string(), name));
  }
  if (!create)
    return absl::NotFoundError(fmt::format("there is no store at {}: the directory is empty", path.string()));
  return false;
}

std::string DescribeThisProcess() {
  char host[256] = "";
  ::gethostname(host, sizeof(host) - 1);
  return fmt::format("process {} ({}) on {}", ::getpid(), ReadLine("/proc/self/comm"), host);
}

absl::StatusOr<int> Lock(const fs::path& path) {
  const fs::path file = path / "LOCK";
  const int lock = ::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (lock < 0) return FileError(file, "open", errno);
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    ::close(lock);
    if (error != EWOULDBLOCK) return FileError(file, "lock", error);
    return absl::UnavailableError(fmt::format("{} is open in {}; one process at a time can open a store",
                                              path.string(), ReadLine(file)));
  }
  const std::string holder = DescribeThisProcess() + "\n";
  // The text is for people only, so a disk too full for it does not keep the store from opening.
  if (::ftruncate(lock, 0) != 0 || ::pwrite(lock, holder.data(), holder.size(), 0) < 0) return lock;
  return lock;
}

}  // namespace

absl::StatusOr<DataDir> DataDir::Open(const fs::path& path, bool create) {
  const auto exists = Inspect(path, create);
  if (!exists.ok()) return exists.status();
  std::error_code error;
  if (!*exists) {
    fs::path folder = fs::absolute(path);
    if (!folder.has_filename()) folder = folder.parent_path();
    if (!fs::create_directories(folder.parent_path(), error) && error)
      return FileError(folder.parent_path(), "create", error.value());
    // Other users of this machine must not read the data, whatever modes RocksDB gives its files. An empty
    // directory that exists already keeps the mode that its owner chose.
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return FileError(path, "create", errno);
  }
  const auto lock = Lock(path);
  if (!lock.ok()) return lock.status();
  DataDir dir(fs::absolute(path), *lock);
  if (!*exists) {
    // Inspect again under the lock: another process may have created the store meanwhile.
    const auto still = Inspect(path, create);
    if (!still.ok()) return still.status();
    if (!*still) {
      const std::string text = fmt::format("{}{}\n", kMagic, kFormat);
      if (auto status = ReplaceFile(dir.mark(), text); !status.ok()) return status;
    }
  }
  return dir;
}

DataDir::DataDir(DataDir&& other) noexcept
    : path_(std::move(other.path_)),
      lock_(std::exchange(other.lock_, -1)),
      reserve_(std::move(other.reserve_)) {}

DataDir::~DataDir() {
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace kvstore::rocks
