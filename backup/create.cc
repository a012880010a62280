#include "backup/create.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backup/destination.h"
#include "backup/layout.h"
#include "backup/list.h"
#include "backup/pace.h"
#include "backup/parallel.h"
#include "backup/progress_counter.h"
#include "base/clock.h"
#include "base/fail_point.h"
#include "base/files.h"
#include "base/process.h"
#include "blobstore/blob_checksum.h"
#include "blobstore/descriptor.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::backup {
namespace {

namespace fs = std::filesystem;

/// A file of the checkpoint that is read from its beginning to its end.
class FileBytes {
 public:
  /// pace  must outlive it.
  static absl::StatusOr<FileBytes> Open(const fs::path& path, Pace& pace) {
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.is_open()) return FileError(path, "open", errno);
    return FileBytes(std::move(file), path, pace);
  }

  /// As BlobSource.
  absl::StatusOr<size_t> Read(std::span<char> buffer) const {
    if (pace_->is_limited()) buffer = buffer.first(std::min<size_t>(buffer.size(), Pace::kMaxReadBytes));
    ssize_t size = -1;
    do {
      size = ::read(file_.get(), buffer.data(), buffer.size());
    } while (size < 0 && errno == EINTR);
    if (size < 0) return FileError(path_, "read", errno);
    const auto bytes = static_cast<size_t>(size);
    if (auto status = pace_->Wait(bytes); !status.ok()) return status;
    return bytes;
  }

 private:
  FileBytes(Descriptor file, fs::path path, Pace& pace)
      : file_(std::move(file)), path_(std::move(path)), pace_(&pace) {}

  Descriptor file_;
  fs::path path_;
  Pace* pace_;
};

absl::StatusOr<std::string> ChecksumOf(const fs::path& path, Pace& pace) {
  const auto bytes = FileBytes::Open(path, pace);
  if (!bytes.ok()) return bytes.status();
  BlobHasher hasher;
  std::string buffer(size_t{1} << 20, '\0');
  for (;;) {
    if (auto status = CheckCall(); !status.ok()) return status;
    const auto size = bytes->Read(buffer);
    if (!size.ok()) return size.status();
    if (*size == 0) return hasher.Finish();
    hasher.Add(std::string_view(buffer).substr(0, *size));
  }
}

uint64_t BytesOf(const Checkpoint& checkpoint) {
  uint64_t bytes = 0;
  for (const CheckpointFile& file : checkpoint.files()) bytes += file.size;
  return bytes;
}

/// One run of CreateBackup. Its methods are called by several threads at a time.
class Create {
 public:
  Create(BlobStore& blobs, const Destination& destination, const Checkpoint& checkpoint, std::string id,
         uint64_t bytes_per_s, const Progress& progress)
      : blobs_(blobs),
        destination_(destination),
        checkpoint_(checkpoint),
        id_(std::move(id)),
        pace_(bytes_per_s),
        progress_(progress, BytesOf(checkpoint),
                  "the backup was stopped; the next one goes on where it was") {}

  /// Makes sure that the destination has the file.
  absl::StatusOr<BackedUpFile> Keep(const CheckpointFile& file) {
    auto kept = Find(file);
    if (kept.ok() && kept->blob.empty()) kept = Send(file, *std::move(kept));
    if (!kept.ok()) return kept;
    if (auto status = progress_.Add(file.size); !status.ok()) return status;
    return kept;
  }

  uint64_t sent_objects() const { return sent_objects_; }
  uint64_t sent_bytes() const { return sent_bytes_; }

 private:
  fs::path PathOf(const CheckpointFile& file) const { return checkpoint_.folder() / file.path; }

  /// Returns the file with the object that has its bytes, and its checksum; without an object if there is
  /// none that can be relied on, and then without the checksum of a table.
  absl::StatusOr<BackedUpFile> Find(const CheckpointFile& file) const {
    BackedUpFile found{.path = file.path, .size = file.size};
    if (file.unique_id.empty()) {
      auto checksum = ChecksumOf(PathOf(file), pace_);
      if (!checksum.ok()) return checksum.status();
      found.checksum = *std::move(checksum);
    }
    const std::string identity = IdentityIn(file, found);
    if (const BackedUpFile* const base = destination_.Kept(identity, file.size); base != nullptr) {
      found.blob = base->blob;
      found.checksum = base->checksum;
      return found;
    }
    found.blob = destination_.YoungObject(identity, file.size);
    if (found.blob.empty() || !found.checksum.empty()) return found;
    auto checksum = ChecksumOf(PathOf(file), pace_);
    if (!checksum.ok()) return checksum.status();
    found.checksum = *std::move(checksum);
    return found;
  }

  absl::StatusOr<BackedUpFile> Send(const CheckpointFile& file, BackedUpFile kept) {
    const std::string identity = IdentityIn(file, kept);
    for (std::string& name : destination_.NamesFor(identity, file.size, id_)) {
      Reached("backup-object");
      auto sent = Put(file, name, kept.checksum);
      if (sent.ok()) {
        ++sent_objects_;
        sent_bytes_ += sent->size;
      } else if (absl::IsAlreadyExists(sent.status())) {
        // Another create has mended it meanwhile, or another file of this one has the same bytes.
        sent = SameObject(file, name);
      }
      if (absl::IsAlreadyExists(sent.status())) continue;
      if (!sent.ok()) return sent.status();
      kept.blob = std::move(name);
      kept.checksum = std::move(sent->checksum);
      return kept;
    }
    return absl::DataLossError(fmt::format("{}: there are two objects {} that do not have the bytes of {}",
                                           blobs_.url(), identity, PathOf(file).string()));
  }

  /// Puts an object.
  ///
  /// checksum  That its bytes must have, unless empty.
  absl::StatusOr<BlobInfo> Put(const CheckpointFile& file, const std::string& name,
                               std::string_view checksum) {
    const auto bytes = FileBytes::Open(PathOf(file), pace_);
    if (!bytes.ok()) return bytes.status();
    auto sent = blobs_.PutStream(
        name, [&bytes](std::span<char> buffer) { return bytes->Read(buffer); }, PutMode::kIfAbsent);
    if (!sent.ok()) return sent;
    const bool has_size = sent->size == file.size;
    if (has_size && (checksum.empty() || sent->checksum == checksum)) return sent;
    // The next create would rely on an object of this name.
    blobs_.Delete(name).IgnoreError();
    return absl::DataLossError(
        has_size ? fmt::format("{}: its bytes have changed while it was backed up", PathOf(file).string())
                 : fmt::format("{} has {} bytes, and {} when the checkpoint was made", PathOf(file).string(),
                               sent->size, file.size));
  }

  /// Returns what the file has if the object has the same; else ALREADY_EXISTS.
  absl::StatusOr<BlobInfo> SameObject(const CheckpointFile& file, const std::string& name) {
    const auto there = blobs_.Stat(name);
    if (!there.ok()) return there.status();
    auto checksum = ChecksumOf(PathOf(file), pace_);
    if (!checksum.ok()) return checksum.status();
    if (there->size != file.size || (!there->checksum.empty() && there->checksum != *checksum)) {
      return absl::AlreadyExistsError(name);
    }
    return BlobInfo{.size = file.size, .checksum = *std::move(checksum)};
  }

  static std::string IdentityIn(const CheckpointFile& file, const BackedUpFile& kept) {
    return file.unique_id.empty() ? FileBlob(kept.checksum) : TableBlob(file.unique_id);
  }

  BlobStore& blobs_;
  const Destination& destination_;
  const Checkpoint& checkpoint_;
  const std::string id_;
  mutable Pace pace_;
  ProgressCounter progress_;
  std::atomic<uint64_t> sent_objects_{0};
  std::atomic<uint64_t> sent_bytes_{0};
};

}  // namespace

absl::StatusOr<Manifest> CreateBackup(const CheckpointMaker& make, BlobStore& blobs, const Progress& progress,
                                      uint64_t bytes_per_s) {
  Manifest manifest{.began_ms = WallClockMs(), .host = ProcessName(), .version = KV_VERSION};
  const auto began = std::chrono::steady_clock::now();
  const auto destination = Destination::LookAt(blobs, manifest.began_ms);
  if (!destination.ok()) return destination.status();
  manifest.id = NewBackupId(manifest.began_ms, destination->newest());
  Reached("backup-checkpoint");
  const auto checkpoint = make();
  if (!checkpoint.ok()) return checkpoint.status();
  manifest.engine = (*checkpoint)->engine();
  manifest.sequence = (*checkpoint)->sequence();
  const std::vector<CheckpointFile>& files = (*checkpoint)->files();
  manifest.files.resize(files.size());
  Create create(blobs, *destination, **checkpoint, manifest.id, bytes_per_s, progress);
  const absl::Status kept = InParallel(files.size(), kSent, [&](size_t i) {
    auto file = create.Keep(files[i]);
    if (!file.ok()) return file.status();
    manifest.files[i] = *std::move(file);
    return absl::OkStatus();
  });
  if (!kept.ok()) return kept;
  manifest.sent_objects = create.sent_objects();
  manifest.sent_bytes = create.sent_bytes();
  if (auto status = PutManifest(blobs, manifest, began); !status.ok()) return status;
  return manifest;
}

}  // namespace kvstore::backup
