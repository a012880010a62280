#include "backends/rocksdb/engine/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <rocksdb/metadata.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/unique_id.h>
#include <rocksdb/version.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "backends/rocksdb/engine/file_system.h"
#include "backends/rocksdb/engine/status.h"
#include "base/files.h"

namespace kvstore::rocks {
namespace {

namespace fs = std::filesystem;

/// Logs of fewer bytes are copied. For more, all memtables are flushed first: a table is sent to a store of
/// backups once, while a log that grows is sent again by each backup.
constexpr uint64_t kFlushedLogs = uint64_t{4} << 20;
/// How often a checkpoint is begun again because the catalog has changed meanwhile.
constexpr int kMaxAttempts = 10;

/// A file besides the database, small enough to be kept in memory.
struct SmallFile {
  std::string path;  // below the directory
  std::string text;
  fs::file_time_type written;

  bool operator==(const SmallFile&) const = default;
};

/// Reads a file of the directory; nullopt if there is none.
absl::StatusOr<std::optional<SmallFile>> ReadSmall(const DataDir& dir, const fs::path& file) {
  std::error_code error;
  SmallFile small{.path = file.lexically_relative(dir.path()).generic_string()};
  // Taken before the text is read: whatever replaces the file later has another time.
  small.written = fs::last_write_time(file, error);
  auto text = ReadFile(file);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  if (!text.ok()) return text.status();
  small.text = *std::move(text);
  return small;
}

/// Returns the paths of the mark, the catalog and the records of migrations.
std::vector<fs::path> SmallPaths(const DataDir& dir, CatalogFile catalog) {
  if (catalog == CatalogFile::kElsewhere) return {dir.mark()};
  std::vector<fs::path> records;
  std::error_code error;  // there is no such folder where nothing migrates
  for (const auto& entry : fs::directory_iterator(dir.migrations(), error)) {
    if (entry.path().extension() == ".json") records.push_back(entry.path());
  }
  std::sort(records.begin(), records.end());
  std::vector<fs::path> paths = {dir.mark(), dir.catalog()};
  paths.insert(paths.end(), records.begin(), records.end());
  return paths;
}

absl::StatusOr<std::vector<SmallFile>> ReadSmallFiles(const DataDir& dir, CatalogFile catalog) {
  std::vector<SmallFile> files;
  const std::vector<fs::path> paths = SmallPaths(dir, catalog);
  for (const fs::path& path : paths) {
    auto file = ReadSmall(dir, path);
    if (!file.ok()) return file.status();
    if (*file) {
      files.push_back(**std::move(file));
    } else if (catalog == CatalogFile::kNeeded && path == dir.catalog()) {
      return absl::FailedPreconditionError(fmt::format(
          "{} is missing, so there is no catalog to back up with the data: if it is in ZooKeeper, "
          "the configuration must say so (zookeeper)",
          path.string()));
    }
  }
  return files;
}

absl::Status CopyBytes(const fs::path& from, const fs::path& to, uint64_t size) {
  std::ifstream in(from, std::ios::binary);
  const auto out = OpenForWriting(to, O_EXCL);
  if (!out.ok()) return out.status();
  std::string buffer(size_t{1} << 20, '\0');
  absl::Status status;
  while (status.ok() && size > 0) {
    const auto part = static_cast<std::streamsize>(std::min<uint64_t>(size, buffer.size()));
    if (!in.read(buffer.data(), part)) {
      status = absl::UnavailableError(fmt::format("cannot read {}: it ends early", from.string()));
      break;
    }
    status = WriteAll(*out, to, std::string_view(buffer).substr(0, static_cast<size_t>(part)));
    size -= static_cast<uint64_t>(part);
  }
  ::close(*out);
  return status;
}

absl::Status LinkOrCopy(const fs::path& from, const fs::path& to, uint64_t size) {
  if (::link(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  // Some file systems have no hard links.
  if (errno == EPERM || errno == EOPNOTSUPP || errno == EXDEV) return CopyBytes(from, to, size);
  return FileError(to, "link", errno);
}

/// Returns what identifies the bytes of a table among those of all stores; empty for a table that does not
/// say so.
absl::StatusOr<std::string> UniqueIdOf(const fs::path& table) {
  rocksdb::Options options;
  options.env = StoreEnv();
  rocksdb::SstFileReader reader(options);
  if (const auto opened = reader.Open(table.string()); !opened.ok()) {
    return ToStatus(opened, "read the properties of " + table.string());
  }
  std::string id;
  if (!rocksdb::GetExtendedUniqueIdFromTableProperties(*reader.GetTableProperties(), &id).ok()) return "";
  std::string digits;
  for (const char byte : id) digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return digits;
}

/// Keeps RocksDB from deleting files.
class DeletionsOff {
 public:
  explicit DeletionsOff(rocksdb::DB& db) : db_(db), status_(db.DisableFileDeletions()) {}
  ~DeletionsOff() {
    if (!status_.ok()) return;
#if ROCKSDB_MAJOR >= 9
    db_.EnableFileDeletions().PermitUncheckedError();
#else
    db_.EnableFileDeletions(/*force=*/false).PermitUncheckedError();
#endif
  }
  DeletionsOff(const DeletionsOff&) = delete;
  DeletionsOff& operator=(const DeletionsOff&) = delete;
  const rocksdb::Status& status() const { return status_; }

 private:
  rocksdb::DB& db_;
  const rocksdb::Status status_;
};

absl::Status AddFile(const rocksdb::LiveFileStorageInfo& info, const fs::path& folder) {
  const fs::path from = fs::path(info.directory) / info.relative_filename;
  const fs::path to = folder / info.relative_filename;
  if (!info.replacement_contents.empty()) {
    const auto file = OpenForWriting(to, O_EXCL);
    if (!file.ok()) return file.status();
    absl::Status status = WriteAll(*file, to, info.replacement_contents);
    ::close(*file);
    return status;
  }
  return info.trim_to_size ? CopyBytes(from, to, info.size) : LinkOrCopy(from, to, info.size);
}

/// Makes the checkpoint of the database in `folder`/rocksdb. RocksDB's own Checkpoint would insist on a file
/// of options, which our databases do not have (file_system.h).
///
/// log_bytes  the size of the logs.
absl::StatusOr<std::vector<CheckpointFile>> CheckpointDatabase(rocksdb::DB& db, const fs::path& folder,
                                                               uint64_t log_bytes) {
  // A log that was not synced may have a hole after a power loss, and then a checkpoint of it would be all
  // that is left of what the hole had.
  if (const auto synced = db.SyncWAL(); !synced.ok()) return ToStatus(synced, "sync the log");
  const DeletionsOff deletions_off(db);
  if (!deletions_off.status().ok()) return ToStatus(deletions_off.status(), "keep the files of the store");
  rocksdb::LiveFilesStorageInfoOptions options;
  // RocksDB 9 never flushes for a limit between these two.
  options.wal_size_for_flush = log_bytes < kFlushedLogs ? std::numeric_limits<uint64_t>::max() : 0;
  std::vector<rocksdb::LiveFileStorageInfo> infos;
  if (const auto listed = db.GetLiveFilesStorageInfo(options, &infos); !listed.ok()) {
    return ToStatus(listed, "list the files of the store");
  }
  std::vector<CheckpointFile> files;
  for (const rocksdb::LiveFileStorageInfo& info : infos) {
    if (info.file_type == rocksdb::kOptionsFile) continue;
    if (auto status = AddFile(info, folder / "rocksdb"); !status.ok()) return status;
    CheckpointFile file{.path = "rocksdb/" + info.relative_filename, .size = info.size};
    if (info.file_type == rocksdb::kTableFile) {
      auto id = UniqueIdOf(folder / file.path);
      if (!id.ok()) return id.status();
      file.unique_id = *std::move(id);
    }
    files.push_back(std::move(file));
  }
  return files;
}

/// Removes the folder of a checkpoint that does not succeed.
class Attempt {
 public:
  explicit Attempt(const fs::path& folder) : folder_(folder) {}
  ~Attempt() {
    std::error_code ignored;
    if (!succeeded_) fs::remove_all(folder_, ignored);
  }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  void Succeeded() { succeeded_ = true; }

 private:
  const fs::path& folder_;
  bool succeeded_ = false;
};

absl::Status MakeFolders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder / "rocksdb", error);
  if (!error) fs::create_directories(folder / "migrations", error);
  return error ? FileError(folder, "create", error.value()) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> ReadStoreFiles(const DataDir& dir, CatalogFile catalog) {
  auto read = ReadSmallFiles(dir, catalog);
  if (!read.ok()) return read.status();
  const std::string mark = dir.mark().lexically_relative(dir.path()).generic_string();
  std::map<std::string, std::string> files;
  for (SmallFile& file : *read) {
    if (file.path != mark) files.emplace(std::move(file.path), std::move(file.text));
  }
  return files;
}

absl::StatusOr<std::unique_ptr<Checkpoint>> CheckpointDirectory(const DataDir& dir, rocksdb::DB& db,
                                                                uint64_t number, CatalogFile catalog,
                                                                uint64_t log_bytes) {
  const fs::path folder = dir.checkpoints() / std::to_string(number);
  auto before = ReadSmallFiles(dir, catalog);
  if (!before.ok()) return before.status();
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    Attempt made(folder);
    if (auto status = MakeFolders(folder); !status.ok()) return status;
    const uint64_t sequence = db.GetLatestSequenceNumber();
    auto files = CheckpointDatabase(db, folder, log_bytes);
    if (!files.ok()) return files.status();
    auto after = ReadSmallFiles(dir, catalog);
    if (!after.ok()) return after.status();
    if (*after != *before) {
      // A dataset was created or dropped meanwhile, so the catalog may name one that the database lacks.
      before = std::move(after);
      continue;
    }
    for (const SmallFile& file : *before) {
      if (auto status = ReplaceFile(folder / file.path, file.text); !status.ok()) return status;
      files->push_back({.path = file.path, .size = file.text.size()});
    }
    made.Succeeded();
    return std::make_unique<Checkpoint>(
        folder, *std::move(files), fmt::format("rocksdb {}", rocksdb::GetRocksVersionAsString()), sequence);
  }
  return absl::UnavailableError(
      fmt::format("{}: datasets were created, altered or dropped during each of {} attempts to make a "
                  "checkpoint; try again when the catalog is quiet",
                  dir.path().string(), kMaxAttempts));
}

}  // namespace kvstore::rocks
