#include "blobstore/s3_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "blobstore/blob_checksum.h"
#include "blobstore/s3_answers.h"

namespace kvstore::s3 {
namespace {

/// A piece of the blob, as far as it has been read.
struct Piece {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t received = 0;
  uint64_t asked_from = 0;  // where the attempt in flight begins
  Sha256 hasher;

  uint64_t next() const { return offset + received; }
  uint64_t end() const { return offset + size; }
};

/// One reading of a blob.
class Reader {
 public:
  Reader(S3Client& client, std::string_view name, const BlobInfo& expected, const BlobSink& sink)
      : client_(client), name_(name), expected_(expected), sink_(sink), pieces_(PiecesOf(expected.size)) {}

  absl::Status Run() {
    std::vector<S3Call> calls(pieces_.size());
    for (size_t i = 0; i < calls.size(); ++i) SetUp(calls[i], pieces_[i]);
    if (auto status = client_.Run(calls, client_.options().parallel_reads); !status.ok()) {
      // OUT_OF_RANGE: the blob is shorter than expected.
      return status.code() == absl::StatusCode::kOutOfRange ? Lost(std::string(status.message())) : status;
    }
    std::vector<Sha256Digest> digests;
    for (Piece& piece : pieces_) {
      if (piece.received != piece.size)
        return Lost(fmt::format("it ends after byte {} of {}", piece.next(), expected_.size));
      digests.push_back(piece.hasher.Finish());
    }
    const std::string checksum = BlobChecksum(digests);
    if (expected_.checksum.empty() || checksum == expected_.checksum) return absl::OkStatus();
    return Lost(fmt::format("its checksum is {}, not {}", checksum, expected_.checksum));
  }

 private:
  static std::vector<Piece> PiecesOf(uint64_t size) {
    std::vector<Piece> pieces;
    for (uint64_t offset = 0; offset < size; offset += kBlobPieceBytes) {
      pieces.push_back({.offset = offset, .size = std::min(kBlobPieceBytes, size - offset)});
    }
    return pieces;
  }

  void SetUp(S3Call& call, Piece& piece) {
    call.method = "GET";
    call.name = name_;
    call.before_attempt = [&piece](S3Call& self) {
      piece.asked_from = piece.next();
      self.headers = {{"range", fmt::format("bytes={}-{}", piece.next(), piece.end() - 1)}};
    };
    call.on_bytes = [this, &piece](const HttpExchange& exchange, std::string_view bytes) {
      return Take(piece, exchange, bytes);
    };
  }

  absl::Status Take(Piece& piece, const HttpExchange& exchange, std::string_view bytes) {
    if (auto status = CheckHead(piece, exchange); !status.ok()) return status;
    if (bytes.size() > piece.size - piece.received) return Lost("the server sends more than was asked for");
    piece.hasher.Add(bytes);
    const uint64_t at = piece.next();
    piece.received += bytes.size();
    return sink_(at, bytes);
  }

  /// Whether an answer is about the bytes that were asked for, and about the same blob as those before.
  absl::Status CheckHead(const Piece& piece, const HttpExchange& exchange) {
    const auto range = ParseContentRange(exchange.Header("content-range"));
    if (!range) return Lost("the server does not say which range it sends");
    if (range->total != expected_.size)
      return Lost(fmt::format("it has {} bytes, not {}", range->total, expected_.size));
    if (range->first != piece.asked_from || range->last + 1 != piece.end()) {
      return Lost("the server sends another range than was asked for");
    }
    const std::string etag = exchange.Header("etag");
    if (etag_.empty()) etag_ = etag;
    return etag == etag_ ? absl::OkStatus() : Lost("it was replaced while it was read");
  }

  absl::Status Lost(std::string_view problem) const {
    return absl::DataLossError(fmt::format("{}: GET {}: {}", client_.location().url, name_, problem));
  }

  S3Client& client_;
  const std::string name_;
  const BlobInfo expected_;
  const BlobSink& sink_;
  std::vector<Piece> pieces_;
  std::string etag_;
};

}  // namespace

absl::Status ReadPieces(S3Client& client, std::string_view name, const BlobInfo& expected,
                        const BlobSink& sink) {
  return Reader(client, name, expected, sink).Run();
}

}  // namespace kvstore::s3
