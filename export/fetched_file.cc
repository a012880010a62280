#include "export/fetched_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>

#include "base/files.h"

namespace kvstore::exports {

absl::StatusOr<Descriptor> FetchFile(BlobStore& blobs, std::string_view name, const BlobInfo& expected) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "kv-export-XXXXXX";
  std::string made = path.string();
  Descriptor file(::mkostemp(made.data(), O_CLOEXEC));
  if (!file.is_open()) return FileError(path, "create", errno);
  ::unlink(made.c_str());
  const auto write = [&](uint64_t offset, std::string_view bytes) -> absl::Status {
    while (!bytes.empty()) {
      const ssize_t size = ::pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return FileError(path, "write", errno);
      offset += static_cast<uint64_t>(size);
      bytes.remove_prefix(static_cast<size_t>(size));
    }
    return absl::OkStatus();
  };
  if (auto status = blobs.Read(name, expected, write); !status.ok()) return status;
  return file;
}

}  // namespace kvstore::exports
