#include "backup/restore_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "base/files.h"
#include "blobstore/descriptor.h"

namespace kvstore::backup {
namespace {

namespace fs = std::filesystem;

/// Marks a folder as a store.
constexpr std::string_view kStoreMark = "KVSTORE";
constexpr std::string_view kUnfinished = "RESTORING";

absl::Status MakeEmptyFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder.parent_path(), error);
  if (error) return FileError(folder.parent_path(), "create", error.value());
  // Other users of this machine must not read the data.
  if (::mkdir(folder.c_str(), 0700) == 0) return SyncFolder(folder.parent_path());
  if (errno != EEXIST) return FileError(folder, "create", errno);
  fs::directory_iterator entries(folder, error);
  if (error) return FileError(folder, "look into", error.value());
  // The mark comes last, so this is a store, even if the restore that wrote it was killed right then.
  if (fs::exists(folder / kStoreMark, error)) {
    return absl::FailedPreconditionError(fmt::format(
        "{} is a store already; a backup is restored into a new or an empty folder", folder.string()));
  }
  if (fs::exists(folder / kUnfinished, error)) {
    return absl::FailedPreconditionError(
        fmt::format("{} has what another restore has written, which was cut short or is still running; if it "
                    "is not running, remove the folder and begin again",
                    folder.string()));
  }
  for (const fs::directory_entry& entry : entries) {
    return absl::FailedPreconditionError(
        fmt::format("{} is not empty: it holds '{}'; a backup is restored into a new or an empty folder",
                    folder.string(), entry.path().filename().string()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status BeginRestoreFolder(const fs::path& folder, uint64_t bytes, const std::string& what) {
  if (auto status = MakeEmptyFolder(folder); !status.ok()) return status;
  std::error_code error;
  const uint64_t available = fs::space(folder, error).available;
  if (!error && available < bytes) {
    return absl::ResourceExhaustedError(fmt::format(
        "{}: the backup has {} bytes, and {} are free on this disk", folder.string(), bytes, available));
  }
  // If two restores begin in one folder, only one of them can create this file.
  const fs::path unfinished = folder / kUnfinished;
  const auto file = OpenForWriting(unfinished, O_EXCL);
  if (!file.ok()) return file.status();
  const Descriptor open(*file);
  const std::string text = fmt::format("{} is being restored into this folder\n", what);
  absl::Status written = WriteAll(open.get(), unfinished, text);
  if (!written.ok()) EndRestoreFolder(folder);
  return written;
}

void EndRestoreFolder(const fs::path& folder) {
  std::error_code ignored;  // what was restored is whole, with this file or without it
  fs::remove(folder / kUnfinished, ignored);
}

absl::Status SyncFolder(const fs::path& folder) {
  const Descriptor open(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!open.is_open()) return FileError(folder, "open", errno);
  return ::fsync(open.get()) == 0 ? absl::OkStatus() : FileError(folder, "sync", errno);
}

fs::path FolderPath(const fs::path& folder) {
  fs::path path = fs::absolute(folder).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace kvstore::backup
