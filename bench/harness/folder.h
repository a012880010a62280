#pragma once

#include <filesystem>
#include <utility>

#include "absl/status/statusor.h"

namespace kvstore::bench {

/// A folder in the system's place for temporary files, which the destructor removes.
class Folder {
 public:
  static absl::StatusOr<Folder> Make();
  ~Folder();
  Folder(Folder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Folder& operator=(Folder&&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit Folder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace kvstore::bench
