#include "backup/fetched_object.h"

#include <fmt/format.h>

#include <string_view>

namespace kvstore::backup {

absl::StatusOr<std::string> FetchObject(BlobStore& blobs, const BackedUpFile& file, uint64_t max_bytes) {
  if (file.size > max_bytes) {
    return absl::DataLossError(
        fmt::format("{}: by the manifest it has {} bytes, and such a file of a backup has at most {}; the "
                    "manifest is damaged",
                    file.blob, file.size, max_bytes));
  }
  std::string bytes(file.size, '\0');
  const auto copy = [&bytes](uint64_t offset, std::string_view piece) -> absl::Status {
    if (offset + piece.size() > bytes.size()) return absl::DataLossError("it is longer than it was");
    piece.copy(bytes.data() + offset, piece.size());
    return absl::OkStatus();
  };
  absl::Status read = blobs.Read(file.blob, {.size = file.size, .checksum = file.checksum}, copy);
  if (read.ok()) return bytes;
  if (absl::IsNotFound(read)) return absl::DataLossError(fmt::format("{}: it is missing", file.blob));
  if (!absl::IsDataLoss(read)) return read;
  return absl::DataLossError(fmt::format("{}: {}", file.blob, std::string(read.message())));
}

}  // namespace kvstore::backup
