#include "blobstore/folder_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "blobstore/blob_checksum.h"
#include "blobstore/blob_name.h"
#include "blobstore/descriptor.h"
#include "blobstore/new_file.h"
#include "kvstore_api/call_scope.h"

namespace kvstore {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr const char* kNewFiles = ".new";
constexpr int kOpenFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// A blob's file, open.
struct OpenBlob {
  Descriptor file;
  uint64_t size = 0;
};

/// The parts of "a/b/c": "a/b" and "c". The folder is empty if the name has no '/'.
std::pair<std::string_view, std::string> Split(std::string_view name) {
  const size_t slash = name.rfind('/');
  if (slash == std::string_view::npos) return {"", std::string(name)};
  return {name.substr(0, slash), std::string(name.substr(slash + 1))};
}

/// Reads up to the buffer's size at `offset`; fewer bytes only at the end.
absl::StatusOr<size_t> ReadAt(const Descriptor& file, std::span<char> buffer, uint64_t offset,
                              const fs::path& path) {
  size_t size = 0;
  while (size < buffer.size()) {
    const ssize_t read =
        ::pread(file.get(), buffer.data() + size, buffer.size() - size, static_cast<off_t>(offset + size));
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return BlobFileError(path, "read", errno);
    if (read == 0) break;
    size += static_cast<size_t>(read);
  }
  return size;
}

/// A walk over the blobs of a folder and of those in it, in the order of their names, for one page of a list.
class Walk {
 public:
  Walk(std::string_view prefix, std::string_view after, size_t limit)
      : prefix_(prefix), after_(after), limit_(limit) {}

  /// Adds the blobs of a folder to the page.
  ///
  /// name  What the names of these blobs begin with: empty, or "a/b/".
  absl::Status Visit(const Descriptor& folder, const fs::path& path, const std::string& name) {
    auto names = NamesIn(folder, path);
    if (!names.ok()) return names.status();
    std::vector<std::string> sorted;
    for (std::string& entry : *names) {
      if (entry.starts_with('.')) continue;
      if (auto status = AddSorted(folder, path, std::move(entry), sorted); !status.ok()) return status;
    }
    std::sort(sorted.begin(), sorted.end());
    for (const std::string& entry : sorted) {
      if (page_.blobs.size() > limit_) return absl::OkStatus();
      if (auto status = CheckCall(); !status.ok()) return status;
      if (auto status = VisitEntry(folder, path, name, entry); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  BlobPage Take() {
    if (page_.blobs.size() > limit_) {
      page_.blobs.resize(limit_);
      page_.next = page_.blobs.back().name;
    }
    return std::move(page_);
  }

 private:
  /// Adds an entry to those of its folder; a folder with a '/' after it, as it stands in the names that are
  /// sorted.
  static absl::Status AddSorted(const Descriptor& folder, const fs::path& path, std::string entry,
                                std::vector<std::string>& sorted) {
    struct stat status {};
    if (::fstatat(folder.get(), entry.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      return errno == ENOENT ? absl::OkStatus() : BlobFileError(path / entry, "look at", errno);
    }
    if (S_ISDIR(status.st_mode)) sorted.push_back(entry + '/');
    if (S_ISREG(status.st_mode)) sorted.push_back(std::move(entry));
    return absl::OkStatus();
  }

  absl::Status VisitEntry(const Descriptor& folder, const fs::path& path, const std::string& name,
                          const std::string& entry) {
    const std::string full = name + entry;
    const bool is_folder = entry.ends_with('/');
    const size_t common = std::min(full.size(), prefix_.size());
    if (full.compare(0, common, prefix_, 0, common) != 0) return absl::OkStatus();
    if (!is_folder) return AddBlob(folder, path, full, entry);
    // Whether all names in the folder come before the page.
    if (full < after_ && !after_.starts_with(full)) return absl::OkStatus();
    const Descriptor inner(::openat(folder.get(), entry.substr(0, entry.size() - 1).c_str(), kOpenFolder));
    if (inner.is_open()) return Visit(inner, path / entry, full);
    return errno == ENOENT ? absl::OkStatus() : BlobFileError(path / entry, "open", errno);
  }

  absl::Status AddBlob(const Descriptor& folder, const fs::path& path, const std::string& full,
                       const std::string& entry) {
    if (full <= after_ || full.size() < prefix_.size() || !CheckBlobName(full).ok()) return absl::OkStatus();
    struct stat status {};
    if (::fstatat(folder.get(), entry.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      return errno == ENOENT ? absl::OkStatus() : BlobFileError(path / entry, "look at", errno);
    }
    const auto modified_ms =
        static_cast<uint64_t>(status.st_mtim.tv_sec * 1000 + status.st_mtim.tv_nsec / 1'000'000);
    page_.blobs.push_back({full, static_cast<uint64_t>(status.st_size), modified_ms});
    return absl::OkStatus();
  }

  const std::string prefix_;
  const std::string after_;
  const size_t limit_;
  BlobPage page_;  // with one blob more than the limit if there are more
};

/// A store in a folder.
class FolderStore final : public BlobStore {
 public:
  FolderStore(fs::path path, Descriptor root, Descriptor new_files)
      : path_(std::move(path)), root_(std::move(root)), new_files_(std::move(new_files)) {}

  std::string url() const override { return fmt::format("file:{}", path_.string()); }

  absl::StatusOr<BlobInfo> Put(std::string_view name, std::string_view bytes, PutMode mode) override {
    if (bytes.size() > kBlobPieceBytes) {
      return absl::InvalidArgumentError(
          fmt::format("blob {} has {} bytes; at most {} are put at once, larger ones as a stream", name,
                      bytes.size(), kBlobPieceBytes));
    }
    const auto rest = [&bytes](std::span<char> buffer) -> absl::StatusOr<size_t> {
      const size_t size = std::min(buffer.size(), bytes.size());
      bytes.copy(buffer.data(), size);
      bytes.remove_prefix(size);
      return size;
    };
    return PutStream(name, rest, mode);
  }

  absl::StatusOr<BlobInfo> PutStream(std::string_view name, const BlobSource& source, PutMode mode) override {
    if (auto status = CheckBlobName(name); !status.ok()) return status;
    auto file = NewFile::Create(new_files_, path_ / kNewFiles);
    if (!file.ok()) return file.status();
    BlobInfo info;
    BlobHasher hasher;
    std::string buffer(kBufferBytes, '\0');
    while (true) {
      if (auto status = CheckCall(); !status.ok()) return status;
      const auto size = source(buffer);
      if (!size.ok()) return size.status();
      if (*size == 0) break;
      info.size += *size;
      if (info.size > kMaxBlobBytes) {
        return absl::InvalidArgumentError(
            fmt::format("blob {} has more than {} bytes, which is the most allowed", name, kMaxBlobBytes));
      }
      const std::string_view bytes(buffer.data(), *size);
      hasher.Add(bytes);
      if (auto status = file->Append(bytes); !status.ok()) return status;
    }
    info.checksum = hasher.Finish();
    const auto [folder_name, last] = Split(name);
    const auto folder = OpenFolder(folder_name, /*create=*/true);
    if (!folder.ok()) return folder.status();
    if (auto status = file->MoveTo(*folder, last, mode == PutMode::kReplace, path_ / name); !status.ok())
      return status;
    return info;
  }

  absl::StatusOr<std::string> Get(std::string_view name, uint64_t max_bytes) override {
    const auto blob = OpenToRead(name);
    if (!blob.ok()) return blob.status();
    const uint64_t most = std::min(max_bytes, kBlobPieceBytes);
    if (blob->size > most) {
      return absl::FailedPreconditionError(fmt::format("{} has {} bytes; at most {} were asked for",
                                                       (path_ / name).string(), blob->size, most));
    }
    return ReadRange(*blob, name, 0, blob->size);
  }

  absl::StatusOr<std::string> GetRange(std::string_view name, uint64_t offset, uint64_t bytes) override {
    if (bytes > kBlobPieceBytes) {
      return absl::InvalidArgumentError(
          fmt::format("a range of {} bytes; at most {} are read at once", bytes, kBlobPieceBytes));
    }
    const auto blob = OpenToRead(name);
    if (!blob.ok()) return blob.status();
    if (offset >= blob->size) return "";
    return ReadRange(*blob, name, offset, std::min(bytes, blob->size - offset));
  }

  absl::Status Read(std::string_view name, const BlobInfo& expected, const BlobSink& sink) override {
    const auto blob = OpenToRead(name);
    if (!blob.ok()) return blob.status();
    const std::string path = (path_ / name).string();
    if (blob->size != expected.size) {
      return absl::DataLossError(fmt::format("{} has {} bytes, not {}", path, blob->size, expected.size));
    }
    BlobHasher hasher;
    std::string buffer(std::min<uint64_t>(kBufferBytes, expected.size), '\0');
    for (uint64_t offset = 0; offset < expected.size;) {
      if (auto status = CheckCall(); !status.ok()) return status;
      const auto size = ReadAt(blob->file, buffer, offset, path);
      if (!size.ok()) return size.status();
      if (*size == 0) return absl::DataLossError(fmt::format("{} was cut off while it was read", path));
      const std::string_view bytes(buffer.data(), std::min<uint64_t>(*size, expected.size - offset));
      hasher.Add(bytes);
      if (auto status = sink(offset, bytes); !status.ok()) return status;
      offset += bytes.size();
    }
    const std::string checksum = hasher.Finish();
    if (expected.checksum.empty() || checksum == expected.checksum) return absl::OkStatus();
    return absl::DataLossError(
        fmt::format("{}: its checksum is {}, not {}", path, checksum, expected.checksum));
  }

  absl::StatusOr<BlobPage> List(std::string_view prefix, std::string_view after, size_t limit) override {
    if (auto status = CheckBlobPrefix(prefix); !status.ok()) return status;
    if (limit < 1 || limit > kMaxListed) {
      return absl::InvalidArgumentError(fmt::format("limit: {}; 1 to {} are allowed", limit, kMaxListed));
    }
    Walk walk(prefix, after, limit);
    if (auto status = walk.Visit(root_, path_, ""); !status.ok()) return status;
    return walk.Take();
  }

  absl::Status Delete(std::string_view name) override {
    if (auto status = CheckBlobName(name); !status.ok()) return status;
    const auto [folder_name, last] = Split(name);
    const auto folder = OpenFolder(folder_name, /*create=*/false);
    if (absl::IsNotFound(folder.status())) return absl::OkStatus();
    if (!folder.ok()) return folder.status();
    if (::unlinkat(folder->get(), last.c_str(), 0) != 0) {
      return errno == ENOENT ? absl::OkStatus() : BlobFileError(path_ / name, "delete", errno);
    }
    return ::fsync(folder->get()) == 0 ? absl::OkStatus() : BlobFileError(path_ / folder_name, "sync", errno);
  }

  absl::StatusOr<BlobInfo> Stat(std::string_view name) override {
    const auto blob = OpenToRead(name);
    if (!blob.ok()) return blob.status();
    return BlobInfo{.size = blob->size};
  }

 private:
  /// Opens a folder in this one, and creates what is missing of its path if wanted; else NOT_FOUND.
  absl::StatusOr<Descriptor> OpenFolder(std::string_view name, bool create) const {
    Descriptor folder(::openat(root_.get(), ".", kOpenFolder));
    if (!folder.is_open()) return BlobFileError(path_, "open", errno);
    for (fs::path at = path_; !name.empty();) {
      const size_t slash = std::min(name.find('/'), name.size());
      const std::string segment(name.substr(0, slash));
      name.remove_prefix(std::min(slash + 1, name.size()));
      at /= segment;
      if (create) {
        if (::mkdirat(folder.get(), segment.c_str(), 0700) != 0 && errno != EEXIST) {
          return BlobFileError(at, "create", errno);
        }
        // Another put may just have made it, and may not have synced it yet. Costs nothing if it has.
        if (::fsync(folder.get()) != 0) return BlobFileError(at.parent_path(), "sync", errno);
      }
      Descriptor inner(::openat(folder.get(), segment.c_str(), kOpenFolder));
      if (!inner.is_open()) {
        return errno == ENOENT ? absl::NotFoundError(fmt::format("there is no folder {}", at.string()))
                               : BlobFileError(at, "open", errno);
      }
      folder = std::move(inner);
    }
    return folder;
  }

  absl::StatusOr<OpenBlob> OpenToRead(std::string_view name) const {
    if (auto status = CheckBlobName(name); !status.ok()) return status;
    if (auto status = CheckCall(); !status.ok()) return status;
    const absl::Status missing =
        absl::NotFoundError(fmt::format("there is no blob {}", (path_ / name).string()));
    const auto [folder_name, last] = Split(name);
    const auto folder = OpenFolder(folder_name, /*create=*/false);
    if (absl::IsNotFound(folder.status())) return missing;
    if (!folder.ok()) return folder.status();
    OpenBlob blob{.file = Descriptor(
                      ::openat(folder->get(), last.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC))};
    if (!blob.file.is_open()) return errno == ENOENT ? missing : BlobFileError(path_ / name, "open", errno);
    struct stat status {};
    if (::fstat(blob.file.get(), &status) != 0) return BlobFileError(path_ / name, "look at", errno);
    if (!S_ISREG(status.st_mode)) return missing;
    blob.size = static_cast<uint64_t>(status.st_size);
    return blob;
  }

  absl::StatusOr<std::string> ReadRange(const OpenBlob& blob, std::string_view name, uint64_t offset,
                                        uint64_t size) const {
    std::string bytes(size, '\0');
    const auto read = ReadAt(blob.file, bytes, offset, path_ / name);
    if (!read.ok()) return read.status();
    if (*read == size) return bytes;
    return absl::DataLossError(fmt::format("{} was cut off while it was read", (path_ / name).string()));
  }

  const fs::path path_;
  const Descriptor root_;
  const Descriptor new_files_;  // the folder of blobs that are being put
};

absl::StatusOr<Descriptor> MakeFolder(int above, const std::string& name, const fs::path& path, int flags) {
  const bool is_new = ::mkdirat(above, name.c_str(), 0700) == 0;
  if (!is_new && errno != EEXIST) return BlobFileError(path, "create", errno);
  Descriptor folder(::openat(above, name.c_str(), flags));
  if (!folder.is_open()) return BlobFileError(path, "open", errno);
  if (!is_new) return folder;
  // A crash of the machine could take the new folder away, and with it the blobs whose puts have returned OK.
  const Descriptor parent(::openat(folder.get(), "..", kOpenFolder));
  if (!parent.is_open()) return BlobFileError(path.parent_path(), "open", errno);
  if (::fsync(parent.get()) != 0) return BlobFileError(path.parent_path(), "sync", errno);
  return folder;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BlobStore>> OpenFolderStore(const fs::path& folder) {
  const fs::path path = fs::absolute(folder);
  // The folder itself may be a link: whoever configures the store says where it is.
  auto root = MakeFolder(AT_FDCWD, path.string(), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (!root.ok()) return root.status();
  auto new_files = MakeFolder(root->get(), kNewFiles, path / kNewFiles, kOpenFolder);
  if (!new_files.ok()) return new_files.status();
  if (auto status = RemoveLeftOver(*new_files, path / kNewFiles); !status.ok()) return status;
  return std::make_unique<FolderStore>(path, *std::move(root), *std::move(new_files));
}

}  // namespace kvstore
