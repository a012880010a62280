#include "backup/restore.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "backup/parallel.h"
#include "base/fail_point.h"
#include "base/files.h"
#include "base/mutex.h"
#include "blobstore/descriptor.h"

namespace kvstore::backup {
namespace {

namespace fs = std::filesystem;

/// Marks a folder as a store.
constexpr std::string_view kMark = "KVSTORE";
constexpr uint64_t kMaxMarkBytes = 4096;
/// Is in the folder from the beginning of a restore to its end.
constexpr std::string_view kUnfinished = "RESTORING";

absl::Status SyncFolder(const fs::path& folder) {
  const Descriptor open(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!open.is_open()) return FileError(folder, "open", errno);
  return ::fsync(open.get()) == 0 ? absl::OkStatus() : FileError(folder, "sync", errno);
}

/// Makes the folder, or checks that it is empty.
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
  if (fs::exists(folder / kMark, error)) {
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

/// One run of RestoreBackup. Unless it is finished, its destructor removes what it has written.
class Restore {
 public:
  Restore(const Manifest& manifest, BlobStore& blobs, fs::path folder, const Progress& progress)
      : manifest_(manifest),
        blobs_(blobs),
        folder_(std::move(folder)),
        progress_(progress),
        total_bytes_(manifest.TotalBytes()) {
    for (const BackedUpFile& file : manifest.files) {
      for (fs::path at = fs::path(file.path).parent_path(); !at.empty(); at = at.parent_path()) {
        folders_.insert(at);
      }
    }
  }
  ~Restore() {
    if (!begun_ || finished_) return;
    std::error_code ignored;
    for (const BackedUpFile& file : manifest_.files) fs::remove(folder_ / file.path, ignored);
    // With what was made in them before the store was opened.
    for (const fs::path& inner : folders_) fs::remove_all(folder_ / inner, ignored);
    fs::remove(folder_ / kUnfinished, ignored);
  }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

  absl::Status Begin() {
    if (auto status = MakeEmptyFolder(folder_); !status.ok()) return status;
    std::error_code error;
    const uint64_t available = fs::space(folder_, error).available;
    if (!error && available < total_bytes_) {
      return absl::ResourceExhaustedError(
          fmt::format("{}: the backup has {} bytes, and {} are free on this disk", folder_.string(),
                      total_bytes_, available));
    }
    // Of two restores into one folder, one creates this file.
    const fs::path unfinished = folder_ / kUnfinished;
    const auto file = OpenForWriting(unfinished, O_EXCL);
    if (!file.ok()) return file.status();
    begun_ = true;
    const Descriptor open(*file);
    const std::string text =
        fmt::format("backup {} of {} is being restored into this folder\n", manifest_.id, blobs_.url());
    if (auto status = WriteAll(open.get(), unfinished, text); !status.ok()) return status;
    for (const fs::path& inner : folders_) {
      if (::mkdir((folder_ / inner).c_str(), 0700) != 0) return FileError(folder_ / inner, "create", errno);
    }
    return SyncFolder(folder_);
  }

  absl::Status WriteFiles() {
    return InParallel(manifest_.files.size(), kFetched, [&](size_t i) {
      Reached("restore-file");
      const BackedUpFile& file = manifest_.files[i];
      return file.path == kMark ? ReadMark(file) : WriteFile(file);
    });
  }

  absl::Status Finish() {
    for (const fs::path& inner : folders_) {
      if (auto status = SyncFolder(folder_ / inner); !status.ok()) return status;
    }
    if (auto status = SyncFolder(folder_); !status.ok()) return status;
    Reached("restore-mark");
    if (auto status = ReplaceFile(folder_ / kMark, mark_); !status.ok()) return status;
    finished_ = true;
    std::error_code ignored;  // the folder is a store, with this file or without it
    fs::remove(folder_ / kUnfinished, ignored);
    return absl::OkStatus();
  }

 private:
  absl::Status ReadMark(const BackedUpFile& file) {
    if (file.size > kMaxMarkBytes) {
      return absl::DataLossError(
          fmt::format("{}: it has {} bytes; at most {} are allowed", file.path, file.size, kMaxMarkBytes));
    }
    return Fetch(file, [this](uint64_t, std::string_view bytes) {
      mark_ += bytes;
      return absl::OkStatus();
    });
  }

  absl::Status WriteFile(const BackedUpFile& file) {
    const fs::path path = folder_ / file.path;
    const auto created = OpenForWriting(path, O_EXCL);
    if (!created.ok()) return created.status();
    const Descriptor open(*created);
    const absl::Status fetched = Fetch(
        file, [&](uint64_t offset, std::string_view bytes) { return WriteAt(open, path, offset, bytes); });
    if (!fetched.ok()) return fetched;
    return ::fsync(open.get()) == 0 ? absl::OkStatus() : FileError(path, "sync", errno);
  }

  absl::Status WriteAt(const Descriptor& file, const fs::path& path, uint64_t offset,
                       std::string_view bytes) {
    const size_t size = bytes.size();
    while (!bytes.empty()) {
      const ssize_t written = ::pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return FileError(path, "write", errno);
      bytes.remove_prefix(static_cast<size_t>(written));
      offset += static_cast<uint64_t>(written);
    }
    return Report(size);
  }

  absl::Status Fetch(const BackedUpFile& file, const BlobSink& sink) {
    const absl::Status read = blobs_.Read(file.blob, {.size = file.size, .checksum = file.checksum}, sink);
    if (!absl::IsNotFound(read)) return read;
    return absl::DataLossError(fmt::format(
        "{}: the object {} of the backup {} is missing; if the backup was pruned meanwhile, restore another",
        blobs_.url(), file.blob, manifest_.id));
  }

  absl::Status Report(uint64_t bytes) {
    const MutexLock lock(mutex_);
    done_bytes_ += bytes;
    if (!progress_ || progress_(done_bytes_, total_bytes_)) return absl::OkStatus();
    return absl::CancelledError("the restore was stopped; begin it again");
  }

  const Manifest& manifest_;
  BlobStore& blobs_;
  const fs::path folder_;
  const Progress& progress_;
  const uint64_t total_bytes_;
  std::set<fs::path> folders_;  // those in the folder that files are in
  std::string mark_;
  bool begun_ = false;
  bool finished_ = false;
  Mutex mutex_;
  uint64_t done_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

absl::Status RestoreBackup(const Manifest& manifest, BlobStore& blobs, const fs::path& folder,
                           const Progress& progress, const BeforeOpen& before_open) {
  if (manifest.dataset) {
    return absl::InvalidArgumentError(
        fmt::format("backup: {} is one of the dataset {}, which is restored into a store (kv backup restore "
                    "--dataset {})",
                    manifest.id, manifest.dataset->spec.name, manifest.dataset->spec.name));
  }
  fs::path path = fs::absolute(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  Restore restore(manifest, blobs, path, progress);
  absl::Status status = restore.Begin();
  if (status.ok()) status = restore.WriteFiles();
  if (status.ok() && before_open) status = before_open(path);
  if (status.ok()) status = restore.Finish();
  return status;
}

}  // namespace kvstore::backup
