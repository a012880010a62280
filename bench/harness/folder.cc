#include "bench/harness/folder.h"

#include <cerrno>
#include <cstdlib>
#include <string>

#include "base/files.h"

namespace kvstore::bench {

absl::StatusOr<Folder> Folder::Make() {
  std::string path = (std::filesystem::temp_directory_path() / "kv-bench-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) return FileError(path, "create", errno);
  return Folder(path);
}

Folder::~Folder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace kvstore::bench
