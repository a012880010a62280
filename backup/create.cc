#include "backup/create.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backup/layout.h"
#include "backup/list.h"
#include "backup/parallel.h"
#include "base/clock.h"
#include "base/fail_point.h"
#include "base/files.h"
#include "base/mutex.h"
#include "base/process.h"
#include "blobstore/blob_checksum.h"
#include "blobstore/descriptor.h"

namespace kvstore::backup {
namespace {

namespace fs = std::filesystem;

/// A file of the checkpoint that is read from its beginning to its end.
class FileBytes {
 public:
  static absl::StatusOr<FileBytes> Open(const fs::path& path) {
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.is_open()) return FileError(path, "open", errno);
    return FileBytes(std::move(file), path);
  }

  /// As BlobSource.
  absl::StatusOr<size_t> Read(std::span<char> buffer) const {
    for (;;) {
      const ssize_t size = ::read(file_.get(), buffer.data(), buffer.size());
      if (size >= 0) return static_cast<size_t>(size);
      if (errno != EINTR) return FileError(path_, "read", errno);
    }
  }

 private:
  FileBytes(Descriptor file, fs::path path) : file_(std::move(file)), path_(std::move(path)) {}

  Descriptor file_;
  fs::path path_;
};

absl::StatusOr<std::string> ChecksumOf(const fs::path& path) {
  const auto bytes = FileBytes::Open(path);
  if (!bytes.ok()) return bytes.status();
  BlobHasher hasher;
  std::string buffer(size_t{1} << 20, '\0');
  for (;;) {
    const auto size = bytes->Read(buffer);
    if (!size.ok()) return size.status();
    if (*size == 0) return hasher.Finish();
    hasher.Add(std::string_view(buffer).substr(0, *size));
  }
}

/// What the destination had when a create looked.
struct Destination {
  std::map<std::string, BlobEntry, std::less<>> objects;     // by name
  std::map<std::string, BackedUpFile, std::less<>> in_base;  // the files of the newest backup, by identity
};

/// Reads the newest backup that can be read, so that a damaged one does not keep others from being made.
absl::Status ReadBase(BlobStore& blobs, Destination& destination) {
  const auto list = ListBackups(blobs);
  if (!list.ok()) return list.status();
  for (auto id = list->live.rbegin(); id != list->live.rend(); ++id) {
    auto manifest = ReadManifest(blobs, *id);
    const absl::Status& read = manifest.status();
    if (absl::IsDataLoss(read) || absl::IsNotFound(read) || absl::IsFailedPrecondition(read)) continue;
    if (!manifest.ok()) return manifest.status();
    for (BackedUpFile& file : manifest->files) {
      std::string identity(IdentityOf(file.blob));
      destination.in_base.insert_or_assign(std::move(identity), std::move(file));
    }
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::StatusOr<Destination> LookAt(BlobStore& blobs) {
  Destination destination;
  if (auto status = ReadBase(blobs, destination); !status.ok()) return status;
  auto objects = ListAll(blobs, kObjectPrefix);
  if (!objects.ok()) return objects.status();
  for (BlobEntry& object : *objects) {
    std::string name = object.name;
    destination.objects.emplace(std::move(name), std::move(object));
  }
  return destination;
}

/// One run of CreateBackup. Its methods are called by several threads at a time.
class Create {
 public:
  Create(BlobStore& blobs, const Destination& destination, const Checkpoint& checkpoint, std::string id,
         uint64_t began_ms, const Progress& progress)
      : blobs_(blobs),
        destination_(destination),
        checkpoint_(checkpoint),
        id_(std::move(id)),
        began_ms_(began_ms),
        progress_(progress) {
    for (const CheckpointFile& file : checkpoint.files()) total_bytes_ += file.size;
  }

  /// Makes sure that the destination has the file.
  absl::StatusOr<BackedUpFile> Keep(const CheckpointFile& file) {
    auto kept = Find(file);
    if (kept.ok() && kept->blob.empty()) kept = Send(file, *std::move(kept));
    if (!kept.ok()) return kept;
    if (auto status = Report(file.size); !status.ok()) return status;
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
      auto checksum = ChecksumOf(PathOf(file));
      if (!checksum.ok()) return checksum.status();
      found.checksum = *std::move(checksum);
    }
    const std::string identity = IdentityIn(file, found);
    const auto base = destination_.in_base.find(identity);
    if (base != destination_.in_base.end() && base->second.size == file.size &&
        HasObject(base->second.blob, file.size)) {
      found.blob = base->second.blob;
      found.checksum = base->second.checksum;
      return found;
    }
    if (!HasObject(identity, file.size) || !IsYoung(identity)) return found;
    found.blob = identity;
    if (!found.checksum.empty()) return found;
    auto checksum = ChecksumOf(PathOf(file));
    if (!checksum.ok()) return checksum.status();
    found.checksum = *std::move(checksum);
    return found;
  }

  absl::StatusOr<BackedUpFile> Send(const CheckpointFile& file, BackedUpFile kept) {
    const std::string identity = IdentityIn(file, kept);
    std::vector<std::string> names = {fmt::format("{}.{}", identity, id_)};
    // An object that is there, but may be pruned soon or has another size, is left alone.
    if (!destination_.objects.contains(identity)) names.insert(names.begin(), identity);
    for (std::string& name : names) {
      Reached("backup-object");
      auto sent = Put(file, name);
      if (sent.ok()) {
        ++sent_objects_;
        sent_bytes_ += sent->size;
      } else if (absl::IsAlreadyExists(sent.status())) {
        // Another create has put it meanwhile, or another file of this one has the same bytes.
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

  absl::StatusOr<BlobInfo> Put(const CheckpointFile& file, const std::string& name) {
    const auto bytes = FileBytes::Open(PathOf(file));
    if (!bytes.ok()) return bytes.status();
    auto sent = blobs_.PutStream(
        name, [&bytes](std::span<char> buffer) { return bytes->Read(buffer); }, PutMode::kIfAbsent);
    if (sent.ok() && sent->size != file.size) {
      return absl::DataLossError(fmt::format("{} has {} bytes, and {} when the checkpoint was made",
                                             PathOf(file).string(), sent->size, file.size));
    }
    return sent;
  }

  /// Returns what the file has if the object has the same; else ALREADY_EXISTS.
  absl::StatusOr<BlobInfo> SameObject(const CheckpointFile& file, const std::string& name) {
    const auto there = blobs_.Stat(name);
    if (!there.ok()) return there.status();
    auto checksum = ChecksumOf(PathOf(file));
    if (!checksum.ok()) return checksum.status();
    if (there->size != file.size || (!there->checksum.empty() && there->checksum != *checksum)) {
      return absl::AlreadyExistsError(name);
    }
    return BlobInfo{.size = file.size, .checksum = *std::move(checksum)};
  }

  static std::string IdentityIn(const CheckpointFile& file, const BackedUpFile& kept) {
    return file.unique_id.empty() ? FileBlob(kept.checksum) : TableBlob(file.unique_id);
  }

  bool HasObject(std::string_view name, uint64_t size) const {
    const auto object = destination_.objects.find(name);
    return object != destination_.objects.end() && object->second.size == size;
  }

  /// Whether an object was put so late that no prune deletes it before this create ends.
  bool IsYoung(std::string_view name) const {
    const auto object = destination_.objects.find(name);
    return object != destination_.objects.end() && object->second.modified_ms + kReuseMs > began_ms_;
  }

  absl::Status Report(uint64_t bytes) {
    const MutexLock lock(mutex_);
    done_bytes_ += bytes;
    if (!progress_ || progress_(done_bytes_, total_bytes_)) return absl::OkStatus();
    return absl::CancelledError("the backup was stopped; the next one goes on where it was");
  }

  BlobStore& blobs_;
  const Destination& destination_;
  const Checkpoint& checkpoint_;
  const std::string id_;
  const uint64_t began_ms_;
  const Progress& progress_;
  uint64_t total_bytes_ = 0;
  std::atomic<uint64_t> sent_objects_{0};
  std::atomic<uint64_t> sent_bytes_{0};
  Mutex mutex_;
  uint64_t done_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

absl::StatusOr<Manifest> CreateBackup(const CheckpointMaker& make, BlobStore& blobs,
                                      const Progress& progress) {
  Manifest manifest{.began_ms = WallClockMs(), .host = ProcessName(), .version = KV_VERSION};
  manifest.id = NewBackupId(manifest.began_ms);
  const auto destination = LookAt(blobs);
  if (!destination.ok()) return destination.status();
  Reached("backup-checkpoint");
  const auto checkpoint = make();
  if (!checkpoint.ok()) return checkpoint.status();
  manifest.engine = (*checkpoint)->engine();
  manifest.sequence = (*checkpoint)->sequence();
  const std::vector<CheckpointFile>& files = (*checkpoint)->files();
  manifest.files.resize(files.size());
  Create create(blobs, *destination, **checkpoint, manifest.id, manifest.began_ms, progress);
  const absl::Status kept = InParallel(files.size(), kSent, [&](size_t i) {
    auto file = create.Keep(files[i]);
    if (file.ok()) manifest.files[i] = *std::move(file);
    return file.status();
  });
  if (!kept.ok()) return kept;
  manifest.sent_objects = create.sent_objects();
  manifest.sent_bytes = create.sent_bytes();
  manifest.finished_ms = WallClockMs();
  if (manifest.finished_ms > manifest.began_ms + kMaxCreateMs) {
    return absl::DeadlineExceededError(fmt::format(
        "the backup took longer than {} hours, so a prune may have deleted objects that it found at its "
        "beginning; it is not kept. Try again: what was sent in the last {} hours is not sent again",
        kMaxCreateMs / kHourMs, kReuseMs / kHourMs));
  }
  const std::string text = EncodeManifest(manifest);
  if (text.size() > kBlobPieceBytes) {
    return absl::ResourceExhaustedError(
        fmt::format("the manifest of {} files has {} bytes; at most {} are allowed", files.size(),
                    text.size(), kBlobPieceBytes));
  }
  Reached("backup-manifest");
  const auto put = blobs.Put(ManifestBlob(manifest.id), text, PutMode::kIfAbsent);
  if (!put.ok()) return put.status();
  return manifest;
}

}  // namespace kvstore::backup
