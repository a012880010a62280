#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "blobstore/descriptor.h"

namespace kvstore {

/// A file that is being written in a folder for such files, and that gets its name when it is complete. It is
/// locked meanwhile, so that RemoveLeftOver can tell it from what a killed process has left. Externally
/// synchronised.
class NewFile {
 public:
  /// Creates a file, which only its owner can read, under a random name.
  ///
  /// folder  Must outlive it.
  /// path    The path of the folder, for messages.
  static absl::StatusOr<NewFile> Create(const Descriptor& folder, const std::filesystem::path& path);
  NewFile(NewFile&&) noexcept = default;
  NewFile& operator=(NewFile&&) = delete;
  /// Removes the file, unless it was moved.
  ~NewFile();

  absl::Status Append(std::string_view bytes);
  /// Makes the file durable and gives it a name in another folder of the same file system; the name is
  /// durable when this returns. ALREADY_EXISTS if there is a file and `replace` is false; FAILED_PRECONDITION
  /// if there is a folder of this name.
  ///
  /// target  The path of the new name, for messages.
  absl::Status MoveTo(const Descriptor& folder, const std::string& name, bool replace,
                      const std::filesystem::path& target);

 private:
  NewFile(const Descriptor& folder, std::string name, Descriptor file, std::filesystem::path path)
      : folder_(&folder), name_(std::move(name)), file_(std::move(file)), path_(std::move(path)) {}

  const Descriptor* folder_;
  std::string name_;
  Descriptor file_;
  std::filesystem::path path_;
};

/// Removes the files of a folder for new files that no process is writing.
absl::Status RemoveLeftOver(const Descriptor& folder, const std::filesystem::path& path);

/// Makes an error as FileError does, but PERMISSION_DENIED if a right is missing or the file system is
/// read-only, and FAILED_PRECONDITION if a part of the path is a link, or a file where a folder is needed.
absl::Status BlobFileError(const std::filesystem::path& path, std::string_view action, int error);

/// Returns the names of a folder's entries, but "." and "..".
absl::StatusOr<std::vector<std::string>> NamesIn(const Descriptor& folder, const std::filesystem::path& path);

}  // namespace kvstore
