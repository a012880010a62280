#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/files.h"

namespace kvstore {

/// A file of a checkpoint.
struct CheckpointFile {
  /// Where the file belongs in the folder of a store: "rocksdb/000012.sst". It lies at the same place in the
  /// checkpoint's folder.
  std::string path;
  uint64_t size = 0;  ///< Bytes.
  /// For a table file: hexadecimal digits that identify its bytes among the table files of all stores. Empty
  /// for other files, which nothing but their bytes identifies.
  std::string unique_id;
};

/// The files of a store as they were at one moment. They stay as they are, whatever is written to the store,
/// until this object is destroyed, which removes them. Table files are hard links, so they take no space of
/// their own as long as the store has them, too. Thread-safe once the last Add has returned.
class Checkpoint {
 public:
  /// Takes over a folder.
  ///
  /// engine    The engine that wrote the files, with its version: "rocksdb 7.8.3".
  /// sequence  The number of the last write that is certainly in the checkpoint, as the engine counts writes.
  Checkpoint(std::filesystem::path folder, std::vector<CheckpointFile> files, std::string engine,
             uint64_t sequence)
      : folder_(std::move(folder)),
        files_(std::move(files)),
        engine_(std::move(engine)),
        sequence_(sequence) {}
  /// Removes the folder. Files that cannot be removed now are removed when the store is opened the next time.
  ~Checkpoint() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  /// Adds a file that the engine does not know of. Not thread-safe: call it before the checkpoint is shared.
  /// Returns the errors of FileError.
  ///
  /// path  relative to the folder; no file of the checkpoint has it yet.
  absl::Status Add(const std::string& path, std::string_view text) {
    std::error_code error;
    std::filesystem::create_directories((folder_ / path).parent_path(), error);
    if (error) return FileError((folder_ / path).parent_path(), "create", error.value());
    if (auto status = ReplaceFile(folder_ / path, text); !status.ok()) return status;
    files_.push_back({.path = path, .size = text.size(), .unique_id = ""});
    return absl::OkStatus();
  }

  const std::filesystem::path& folder() const { return folder_; }
  const std::vector<CheckpointFile>& files() const { return files_; }
  const std::string& engine() const { return engine_; }
  uint64_t sequence() const { return sequence_; }

 private:
  const std::filesystem::path folder_;
  std::vector<CheckpointFile> files_;
  const std::string engine_;
  const uint64_t sequence_;
};

}  // namespace kvstore
