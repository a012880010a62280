#pragma once

#include <filesystem>
#include <memory>

#include "absl/status/statusor.h"
#include "backends/rocksdb/engine/reserve.h"

namespace kvstore::rocks {

/// The directory of an embedded store, locked for this process:
///
///   KVSTORE       marks the directory as a KVStore store, and holds its format version
///   LOCK          is locked (flock) while a process has the store open; its text names that process
///   catalog.json  the datasets and their settings (catalog/file_catalog.h)
///   SEAL          describes the manifest as it was at the last close; SEAL.logs describes the logs (seal.h)
///   RESERVE       disk space kept back for a full disk (reserve.h)
///   rocksdb/      the data
///   migrations/   the records of migrations, beside the catalog
///   checkpoints/  copies of all of this that backups are being made of (checkpoint.h); removed at each open
///
/// Movable. The destructor releases the lock; the kernel releases it when the process dies for any reason.
class DataDir {
 public:
  /// Locks the store at `path` for this process.
  ///
  /// create  make a store there if there is none: `path` does not exist or is an empty directory.
  ///
  /// NOT_FOUND            there is no store, and `create` is not set.
  /// UNAVAILABLE          another process has the store open (the message names it), or the directory cannot
  ///                      be read or written.
  /// FAILED_PRECONDITION  `path` is a file, or a directory that is not a store or has a newer format; nothing
  ///                      is changed.
  static absl::StatusOr<DataDir> Open(const std::filesystem::path& path, bool create);

  DataDir(DataDir&& other) noexcept;
  DataDir& operator=(DataDir&&) = delete;
  ~DataDir();

  /// The catalog file of the store at `path`, for readers that do not open the store.
  static std::filesystem::path CatalogOf(const std::filesystem::path& path) { return path / "catalog.json"; }
  std::filesystem::path catalog() const { return CatalogOf(path_); }
  std::filesystem::path seal() const { return path_ / "SEAL"; }
  std::filesystem::path rocksdb() const { return path_ / "rocksdb"; }
  std::filesystem::path migrations() const { return path_ / "migrations"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  /// The file that marks the directory as a store.
  std::filesystem::path mark() const { return path_ / "KVSTORE"; }
  const std::filesystem::path& path() const { return path_; }
  Reserve& reserve() const { return *reserve_; }
  /// The reserve with shared ownership, for callers that may outlive this object.
  std::shared_ptr<Reserve> shared_reserve() const { return reserve_; }

 private:
  DataDir(std::filesystem::path path, int lock)
      : path_(std::move(path)), lock_(lock), reserve_(std::make_shared<Reserve>(path_ / "RESERVE")) {}

  std::filesystem::path path_;
  int lock_;  // file descriptor; -1 after a move
  std::shared_ptr<Reserve> reserve_;
};

}  // namespace kvstore::rocks
