#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace kvstore {

/// A new folder below that of temporary files (TMPDIR), which only its owner can use, and which is removed
/// with this object. A process that is killed leaves it; the next one that makes such a folder removes it.
class TemporaryFolder {
 public:
  /// prefix  What the folder's name begins with; it says whose it is, as "kv-backup-". All folders of this
  ///         user whose names begin so, and that no process holds, are removed.
  ///
  /// Errors as FileError.
  static absl::StatusOr<std::unique_ptr<TemporaryFolder>> Make(std::string_view prefix);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  TemporaryFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}

  const std::filesystem::path path_;
  const int lock_;  // the open folder, whose lock says that a process holds it
};

}  // namespace kvstore
