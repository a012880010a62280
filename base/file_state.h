#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <optional>

namespace kvstore {

/// Identifies one version of a file without reading it.
struct FileState {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t size = 0;
  int64_t written_ns = 0;
  int64_t changed_ns = 0;  ///< Changes even when somebody sets written_ns.
  bool operator==(const FileState&) const = default;
};

/// Returns the state of a file, or of the one that a link leads to, now; nothing if there is none.
inline std::optional<FileState> ReadFileState(const std::filesystem::path& file) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) return std::nullopt;
  const auto nanoseconds = [](const timespec& time) {
    return int64_t{time.tv_sec} * 1'000'000'000 + int64_t{time.tv_nsec};
  };
  return FileState{.device = found.st_dev,
                   .inode = found.st_ino,
                   .size = found.st_size,
                   .written_ns = nanoseconds(found.st_mtim),
                   .changed_ns = nanoseconds(found.st_ctim)};
}

}  // namespace kvstore
