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

#include "backup/layout.h"
#include "backup/list.h"
#include "backup/pace.h"
#include "backup/parallel.h"
#include "base/clock.h"
#include "base/fail_point.h"
#include "base/files.h"
#include "base/mutex.h"
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

/// What the destination had when a create looked.
struct Destination {
  std::string newest;  // the ID of the newest backup, whether it can be read or not; empty if there is none
  std::map<std::string, BlobEntry, std::less<>> objects;     // by name
  std::map<std::string, BackedUpFile, std::less<>> in_base;  // the files of the newest backup, by identity
};

/// Reads the newest backup that can be read, so that a damaged one does not keep others from being made.
absl::Status ReadBase(BlobStore& blobs, Destination& destination) {
  const auto list = ListBackups(blobs);
  if (!list.ok()) return list.status();
  if (!list->live.empty()) destination.newest = list->live.back();
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
         uint64_t began_ms, uint64_t bytes_per_s, const Progress& progress)
      : blobs_(blobs),
        destination_(destination),
        checkpoint_(checkpoint),
        id_(std::move(id)),
        began_ms_(began_ms),
        pace_(bytes_per_s),
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
      auto checksum = ChecksumOf(PathOf(file), pace_);
      if (!checksum.ok()) return checksum.status();
      found.checksum = *std::move(checksum);
    }
    const std::string identity = IdentityIn(file, found);
    const BackedUpFile* const base = InBase(identity, file.size);
    if (base != nullptr && HasObject(base->blob, file.size)) {
      found.blob = base->blob;
      found.checksum = base->checksum;
      return found;
    }
    found.blob = YoungObject(identity, file.size);
    if (found.blob.empty() || !found.checksum.empty()) return found;
    auto checksum = ChecksumOf(PathOf(file), pace_);
    if (!checksum.ok()) return checksum.status();
    found.checksum = *std::move(checksum);
    return found;
  }

  absl::StatusOr<BackedUpFile> Send(const CheckpointFile& file, BackedUpFile kept) {
    const std::string identity = IdentityIn(file, kept);
    std::vector<std::string> names = {fmt::format("{}.{}", identity, id_)};
    // What the newest backup names and has lost is put where it was, which mends that backup, too.
    const BackedUpFile* const base = InBase(identity, file.size);
    if (base != nullptr && !destination_.objects.contains(base->blob)) {
      names.insert(names.begin(), base->blob);
    }
    for (std::string& name : names) {
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

  bool HasObject(std::string_view name, uint64_t size) const {
    const auto object = destination_.objects.find(name);
    return object != destination_.objects.end() && object->second.size == size;
  }

  /// The file of the newest backup that has these bytes; null if there is none.
  const BackedUpFile* InBase(std::string_view identity, uint64_t size) const {
    const auto base = destination_.in_base.find(identity);
    return base != destination_.in_base.end() && base->second.size == size ? &base->second : nullptr;
  }

  /// The name of an object with these bytes that was put so late that no prune deletes it before this create
  /// ends; empty if there is none.
  std::string YoungObject(std::string_view identity, uint64_t size) const {
    for (auto at = destination_.objects.lower_bound(identity);
         at != destination_.objects.end() && at->first.starts_with(identity); ++at) {
      const BlobEntry& object = at->second;
      const bool is_young = object.modified_ms + kReuseMs > began_ms_;
      if (IdentityOf(at->first) == identity && object.size == size && is_young) return at->first;
    }
    return "";
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
  mutable Pace pace_;
  const Progress& progress_;
  uint64_t total_bytes_ = 0;
  std::atomic<uint64_t> sent_objects_{0};
  std::atomic<uint64_t> sent_bytes_{0};
  Mutex mutex_;
  uint64_t done_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

absl::StatusOr<Manifest> CreateBackup(const CheckpointMaker& make, BlobStore& blobs, const Progress& progress,
                                      uint64_t bytes_per_s) {
  Manifest manifest{.began_ms = WallClockMs(), .host = ProcessName(), .version = KV_VERSION};
  const auto began = std::chrono::steady_clock::now();
  const auto destination = LookAt(blobs);
  if (!destination.ok()) return destination.status();
  manifest.id = NewBackupId(manifest.began_ms, destination->newest);
  Reached("backup-checkpoint");
  const auto checkpoint = make();
  if (!checkpoint.ok()) return checkpoint.status();
  manifest.engine = (*checkpoint)->engine();
  manifest.sequence = (*checkpoint)->sequence();
  const std::vector<CheckpointFile>& files = (*checkpoint)->files();
  manifest.files.resize(files.size());
  Create create(blobs, *destination, **checkpoint, manifest.id, manifest.began_ms, bytes_per_s, progress);
  const absl::Status kept = InParallel(files.size(), kSent, [&](size_t i) {
    auto file = create.Keep(files[i]);
    if (file.ok()) manifest.files[i] = *std::move(file);
    return file.status();
  });
  if (!kept.ok()) return kept;
  manifest.sent_objects = create.sent_objects();
  manifest.sent_bytes = create.sent_bytes();
  // The wall clock may be set back meanwhile; the other one stands still while the machine sleeps.
  manifest.finished_ms =
      std::max(WallClockMs(), manifest.began_ms + Milliseconds(std::chrono::steady_clock::now() - began));
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
  if (const auto read = DecodeManifest(text, manifest.id); !read.ok()) {
    return absl::InternalError(fmt::format("the manifest could not be read again, so it is not put: {}",
                                           std::string(read.status().message())));
  }
  Reached("backup-manifest");
  const auto put = blobs.Put(ManifestBlob(manifest.id), text, PutMode::kIfAbsent);
  if (!put.ok()) return put.status();
  return manifest;
}

}  // namespace kvstore::backup
