#pragma once

#include <filesystem>
#include <memory>

#include "absl/status/statusor.h"
#include "backends/rocksdb/reserve.h"

namespace kvstore::rocks {

/// The directory of an embedded store, held by this process:
///
///   KVSTORE       says that the directory is ours, and its format version
///   LOCK          locked (flock) while a process has the store open; names that process
///   catalog.json  the datasets and their settings (kvstore_api/file_catalog.h)
///   SEAL          what the data's manifest was at the last close, and SEAL.logs what its logs were (seal.h)
///   RESERVE       space for a full disk (reserve.h)
///   rocksdb/      the data
///
/// Movable; releases the lock when it goes. The kernel releases it when the process dies, however it dies.
class DataDir {
 public:
  /// Takes possession of `path`.
  ///
  /// create  make a store there if there is none: `path` does not exist or is an empty directory.
  ///
  /// NOT_FOUND            there is none, and `create` is not set.
  /// UNAVAILABLE          another process has it open; the message names it. Or it cannot be read or written.
  /// FAILED_PRECONDITION  a directory or file that is not ours, or of a newer format; nothing is changed.
  static absl::StatusOr<DataDir> Open(const std::filesystem::path& path, bool create);

  DataDir(DataDir&& other) noexcept;
  DataDir& operator=(DataDir&&) = delete;
  ~DataDir();

  /// Where the catalog of a store is, for those who only read it.
  static std::filesystem::path CatalogOf(const std::filesystem::path& path) { return path / "catalog.json"; }
  std::filesystem::path catalog() const { return CatalogOf(path_); }
  std::filesystem::path seal() const { return path_ / "SEAL"; }
  std::filesystem::path rocksdb() const { return path_ / "rocksdb"; }
  const std::filesystem::path& path() const { return path_; }
  Reserve& reserve() const { return *reserve_; }
  /// For who may outlive this.
  std::shared_ptr<Reserve> shared_reserve() const { return reserve_; }

 private:
  DataDir(std::filesystem::path path, int lock)
      : path_(std::move(path)), lock_(lock), reserve_(std::make_shared<Reserve>(path_ / "RESERVE")) {}

  std::filesystem::path path_;
  int lock_;  // file descriptor; -1 after a move
  std::shared_ptr<Reserve> reserve_;
};

}  // namespace kvstore::rocks
