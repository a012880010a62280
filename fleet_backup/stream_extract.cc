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
#include "backup/fetched_object.h"
#include "backup/parallel.h"
#include "backup/progress_counter.h"
#include "base/fail_point.h"
#include "blobstore/descriptor.h"
#include "catalog/shared_nodes.h"
#include "fleet_backup/piece_cutter.h"
#include "fleet_backup/piece_sender.h"
#include "shardops/program.h"

namespace kvstore::fleet_backup {
namespace {

/// No packed piece has more bytes: what does not compress becomes a little larger.
constexpr uint64_t kMaxPackedBytes = 2 * PieceCutter::kMostBytes;

absl::StatusOr<std::string> FetchPiece(BlobStore& blobs, const backup::BackedUpFile& file) {
  auto packed = backup::FetchObject(blobs, file, kMaxPackedBytes);
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
    absl::Status fetched = backup::InParallel(count, backup::kFetched, [&](size_t i) {
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
  if (file != nullptr) return backup::FetchObject(blobs, *file, kBlobPieceBytes);
  return absl::FailedPreconditionError(
      fmt::format("backup: {} has no {}: it is not one of a store whose catalog is in ZooKeeper", manifest.id,
                  kSharedNodesFile));
}

}  // namespace kvstore::fleet_backup
