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
#include "backup/progress_counter.h"
#include "backup/restore_folder.h"
#include "base/fail_point.h"
#include "base/files.h"
#include "blobstore/descriptor.h"

namespace kvstore::backup {
namespace {

namespace fs = std::filesystem;

/// Marks a folder as a store.
constexpr std::string_view kMark = "KVSTORE";
constexpr uint64_t kMaxMarkBytes = 4096;

/// One run of RestoreBackup. Unless it is finished, its destructor removes what it has written.
class Restore {
 public:
  Restore(const Manifest& manifest, BlobStore& blobs, fs::path folder, const Progress& progress)
      : manifest_(manifest),
        blobs_(blobs),
        folder_(std::move(folder)),
        total_bytes_(manifest.TotalBytes()),
        progress_(progress, total_bytes_, "the restore was stopped; begin it again") {
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
    EndRestoreFolder(folder_);
  }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

  absl::Status Begin() {
    const std::string what = fmt::format("backup {} of {}", manifest_.id, blobs_.url());
    if (auto status = BeginRestoreFolder(folder_, total_bytes_, what); !status.ok()) return status;
    begun_ = true;
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
    EndRestoreFolder(folder_);
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
    absl::Status fetched = Fetch(
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
    return progress_.Add(size);
  }

  absl::Status Fetch(const BackedUpFile& file, const BlobSink& sink) {
    absl::Status read = blobs_.Read(file.blob, {.size = file.size, .checksum = file.checksum}, sink);
    if (!absl::IsNotFound(read)) return read;
    return absl::DataLossError(fmt::format(
        "{}: the object {} of the backup {} is missing; if the backup was pruned meanwhile, restore another",
        blobs_.url(), file.blob, manifest_.id));
  }

  const Manifest& manifest_;
  BlobStore& blobs_;
  const fs::path folder_;
  const uint64_t total_bytes_;
  ProgressCounter progress_;
  std::set<fs::path> folders_;  // those in the folder that files are in
  std::string mark_;
  bool begun_ = false;
  bool finished_ = false;
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
  if (manifest.server) {
    return absl::InvalidArgumentError(fmt::format(
        "backup: {} is one of the MySQL server {}, which is restored with kv backup restore --host {}",
        manifest.id, manifest.server->host, manifest.server->host));
  }
  const fs::path path = FolderPath(folder);
  Restore restore(manifest, blobs, path, progress);
  absl::Status status = restore.Begin();
  if (status.ok()) status = restore.WriteFiles();
  if (status.ok() && before_open) status = before_open(path);
  if (status.ok()) status = restore.Finish();
  return status;
}

}  // namespace kvstore::backup
