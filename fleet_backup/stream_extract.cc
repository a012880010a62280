#include "fleet_backup/stream_extract.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backup/parallel.h"
#include "backup/progress_counter.h"
#include "base/fail_point.h"
#include "blobstore/descriptor.h"
#include "catalog/shared_nodes.h"
#include "fleet_backup/piece_sender.h"
#include "shardops/program.h"

namespace kvstore::fleet_backup {
namespace {

absl::StatusOr<std::string> FetchObject(BlobStore& blobs, const backup::BackedUpFile& file) {
  std::string bytes(file.size, '\0');
  const auto copy = [&](uint64_t offset, std::string_view piece) -> absl::Status {
    if (offset + piece.size() > bytes.size()) return absl::DataLossError("it is longer than it was");
    piece.copy(bytes.data() + offset, piece.size());
    return absl::OkStatus();
  };
  const absl::Status read = blobs.Read(file.blob, {.size = file.size, .checksum = file.checksum}, copy);
  if (read.ok()) return bytes;
  if (absl::IsNotFound(read)) return absl::DataLossError(fmt::format("{}: it is missing", file.blob));
  if (!absl::IsDataLoss(read)) return read;
  return absl::DataLossError(fmt::format("{}: {}", file.blob, std::string(read.message())));
}

absl::StatusOr<std::string> FetchPiece(BlobStore& blobs, const backup::BackedUpFile& file) {
  const auto packed = FetchObject(blobs, file);
  if (!packed.ok()) return packed;
  auto piece = UnpackPiece(*packed);
  if (piece.ok()) return piece;
  return absl::DataLossError(fmt::format("{}: {}", file.blob, std::string(piece.status().message())));
}

/// The program that writes the files of a stream.
class Extractor {
 public:
  static absl::StatusOr<std::unique_ptr<Extractor>> Start(const std::filesystem::path& folder) {
    std::array<int, 2> ends{};
    // A socket, since writing to a pipe whose reader has died would end this process (SIGPIPE).
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      return absl::ResourceExhaustedError(std::strerror(errno));
    }
    return std::unique_ptr<Extractor>(new Extractor(folder, ends));
  }

  absl::Status Write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(input_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) {
        const absl::Status ended = program_.Join();
        return ended.ok() ? absl::InternalError("mbstream: it ended before it had read everything") : ended;
      }
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return absl::OkStatus();
  }
  /// Waits until all is written.
  absl::Status Finish() {
    input_ = Descriptor();
    return program_.Join();
  }

 private:
  Extractor(const std::filesystem::path& folder, std::array<int, 2> ends)
      : input_(ends[0]),
        output_(ends[1]),
        program_({"mbstream", "-x", "-C", folder.string()}, output_.get(), -1) {
    output_ = Descriptor();
  }

  Descriptor input_;
  Descriptor output_;
  shardops::Program program_;
};

}  // namespace

absl::Status ExtractStream(const backup::Manifest& manifest, BlobStore& blobs,
                           const std::filesystem::path& folder, const Progress& progress) {
  std::vector<const backup::BackedUpFile*> files;
  uint64_t total = 0;
  for (const backup::BackedUpFile& file : manifest.files) {
    if (!IsPiece(file)) continue;
    files.push_back(&file);
    total += file.size;
  }
  backup::ProgressCounter done(progress, total, "the restore was stopped; begin it again");
  auto extractor = Extractor::Start(folder);
  if (!extractor.ok()) return extractor.status();
  // Some are fetched at a time, and written in order.
  for (size_t next = 0; next < files.size(); next += backup::kFetched) {
    const size_t count = std::min(backup::kFetched, files.size() - next);
    std::vector<std::string> pieces(count);
    const absl::Status fetched = backup::InParallel(count, backup::kFetched, [&](size_t i) {
      Reached("host-restore-object");
      auto piece = FetchPiece(blobs, *files[next + i]);
      if (piece.ok()) pieces[i] = *std::move(piece);
      return piece.status();
    });
    if (!fetched.ok()) return fetched;
    for (size_t i = 0; i < count; ++i) {
      if (auto status = (*extractor)->Write(pieces[i]); !status.ok()) return status;
      if (auto status = done.Add(files[next + i]->size); !status.ok()) return status;
    }
  }
  return (*extractor)->Finish();
}

absl::StatusOr<std::string> ReadNodesFile(const backup::Manifest& manifest, BlobStore& blobs) {
  const backup::BackedUpFile* const file = manifest.Find(kSharedNodesFile);
  if (file != nullptr) return FetchObject(blobs, *file);
  return absl::FailedPreconditionError(
      fmt::format("backup: {} has no {}: it is not one of a store whose catalog is in ZooKeeper", manifest.id,
                  kSharedNodesFile));
}

}  // namespace kvstore::fleet_backup
