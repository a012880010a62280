#include "blobstore/s3_store.h"

#include <fmt/format.h>

#include <future>

#include "blobstore/blob_checksum.h"
#include "blobstore/blob_name.h"
#include "blobstore/s3_answers.h"
#include "blobstore/s3_client.h"
#include "blobstore/s3_read.h"
#include "blobstore/s3_upload.h"

namespace kvstore {
namespace {

using s3::S3Call;
using s3::S3Client;

/// A page of a list holds up to 1,000 names of up to 1,024 bytes, each of which may be sent as "%XX".
constexpr size_t kMaxListBytes = size_t{8} << 20;
constexpr size_t kMaxListAfterBytes = 1024;

/// A store in a bucket.
class S3Store final : public BlobStore {
 public:
  S3Store(s3::S3Location location, const S3Options& options) : client_(std::move(location), options) {}

  std::string url() const override { return client_.location().url; }

  absl::StatusOr<BlobInfo> Put(std::string_view name, std::string_view bytes, PutMode mode) override {
    if (auto status = CheckBlobName(name); !status.ok()) return status;
    if (bytes.size() > kBlobPieceBytes) {
      return absl::InvalidArgumentError(
          fmt::format("blob {} has {} bytes; at most {} are put at once, larger ones as a stream", name,
                      bytes.size(), kBlobPieceBytes));
    }
    const Sha256Digest digest = Sha256Of(bytes);
    const BlobInfo info{.size = bytes.size(), .checksum = BlobChecksum({digest})};
    S3Call call = s3::PutCall(name, bytes, digest);
    if (mode == PutMode::kIfAbsent) call.headers.emplace_back("if-none-match", "*");
    absl::Status status = client_.Run(call);
    if (status.code() == absl::StatusCode::kAlreadyExists && call.may_be_done)
      return OwnOrError(name, info, status);
    if (!status.ok()) return status;
    const std::string kept = s3::ChecksumOf(call.exchange);
    if (kept.empty() || kept == info.checksum) return info;
    return absl::DataLossError(
        fmt::format("{}: PUT {}: the server has other bytes than were sent: their checksum is {}, not {}",
                    url(), name, kept, info.checksum));
  }

  absl::StatusOr<BlobInfo> PutStream(std::string_view name, const BlobSource& source, PutMode mode) override {
    if (auto status = CheckBlobName(name); !status.ok()) return status;
    std::string first;
    std::string second;
    if (auto status = s3::ReadPiece(source, first); !status.ok()) return status;
    if (first.size() == kBlobPieceBytes) {
      if (auto status = s3::ReadPiece(source, second); !status.ok()) return status;
    }
    if (second.empty()) return Put(name, first, mode);
    if (mode == PutMode::kIfAbsent) {
      // Whether it is there is decided when the upload is complete. That costs a transfer of the whole blob,
      // so it is asked first.
      if (const auto there = Stat(name); there.ok()) return Exists(name);
    }
    const s3::UploadResult result =
        s3::Upload(client_, name, std::move(first), std::move(second), source, mode);
    if (result.status.ok()) return result.sent;
    const bool is_unclear = result.status.code() == absl::StatusCode::kAlreadyExists ||
                            result.status.code() == absl::StatusCode::kNotFound;
    if (is_unclear && result.may_be_done) return OwnOrError(name, result.sent, result.status);
    return result.status;
  }

  absl::StatusOr<std::string> Get(std::string_view name, uint64_t max_bytes) override {
    if (auto status = CheckBlobName(name); !status.ok()) return status;
    max_bytes = std::min(max_bytes, kBlobPieceBytes);
    std::string bytes;
    S3Call call{.method = "GET", .name = std::string(name), .headers = {{"x-amz-checksum-mode", "ENABLED"}}};
    call.before_attempt = [&](S3Call&) { bytes.clear(); };
    call.on_bytes = [&](const s3::HttpExchange& exchange, std::string_view part) {
      const uint64_t size = s3::ContentLength(exchange).value_or(0);
      if (size > max_bytes) {
        return absl::FailedPreconditionError(fmt::format(
            "{}: GET {}: it has {} bytes; at most {} were asked for", url(), name, size, max_bytes));
      }
      if (bytes.empty()) bytes.reserve(size);
      return Append(part, max_bytes, bytes);
    };
    if (auto status = client_.Run(call); !status.ok()) return status;
    if (s3::ContentLength(call.exchange) != bytes.size()) {
      return absl::DataLossError(fmt::format(
          "{}: GET {}: {} bytes have arrived, which is not the announced length", url(), name, bytes.size()));
    }
    const std::string kept = s3::ChecksumOf(call.exchange);
    const bool is_one_piece = kept.find('-') == std::string::npos;
    if (kept.empty() || !is_one_piece || kept == BlobChecksum({Sha256Of(bytes)})) return bytes;
    return absl::DataLossError(
        fmt::format("{}: GET {}: the bytes that have arrived do not have its checksum", url(), name));
  }

  absl::StatusOr<std::string> GetRange(std::string_view name, uint64_t offset, uint64_t bytes) override {
    if (auto status = CheckBlobName(name); !status.ok()) return status;
    if (bytes > kBlobPieceBytes) {
      return absl::InvalidArgumentError(
          fmt::format("a range of {} bytes; at most {} are read at once", bytes, kBlobPieceBytes));
    }
    if (offset >= kMaxBlobBytes || bytes == 0) {
      const auto there = Stat(name);
      return there.ok() ? absl::StatusOr<std::string>("") : there.status();
    }
    std::string read;
    S3Call call{.method = "GET", .name = std::string(name)};
    call.headers = {{"range", fmt::format("bytes={}-{}", offset, offset + bytes - 1)}};
    call.before_attempt = [&](S3Call&) { read.clear(); };
    call.on_bytes = [&](const s3::HttpExchange& exchange, std::string_view part) {
      const auto range = s3::ParseContentRange(exchange.Header("content-range"));
      if (!range || range->first != offset || range->last - range->first >= bytes) {
        return absl::DataLossError(
            fmt::format("{}: GET {}: the server sends another range than was asked for", url(), name));
      }
      return Append(part, range->last - range->first + 1, read);
    };
    absl::Status status = client_.Run(call);
    // The blob ends before the range begins.
    if (status.code() == absl::StatusCode::kOutOfRange) return "";
    if (!status.ok()) return status;
    return read;
  }

  absl::Status Read(std::string_view name, const BlobInfo& expected, const BlobSink& sink) override {
    if (auto status = CheckBlobName(name); !status.ok()) return status;
    if (expected.size > kMaxBlobBytes) {
      return absl::InvalidArgumentError(
          fmt::format("size: {} bytes; a blob has at most {}", expected.size, kMaxBlobBytes));
    }
    if (expected.size > 0) return s3::ReadPieces(client_, name, expected, sink);
    const auto there = Stat(name);
    if (!there.ok()) return there.status();
    if (there->size == 0 && (expected.checksum.empty() || expected.checksum == BlobChecksum({Sha256Of("")})))
      return absl::OkStatus();
    return absl::DataLossError(
        fmt::format("{}: GET {}: it has {} bytes, not 0, or another checksum", url(), name, there->size));
  }

  absl::StatusOr<BlobPage> List(std::string_view prefix, std::string_view after, size_t limit) override {
    if (auto status = CheckBlobPrefix(prefix); !status.ok()) return status;
    if (limit < 1 || limit > kMaxListed) {
      return absl::InvalidArgumentError(fmt::format("limit: {}; 1 to {} are allowed", limit, kMaxListed));
    }
    if (after.size() > kMaxListAfterBytes) {
      return absl::InvalidArgumentError(
          fmt::format("after: {} bytes; at most {} are allowed", after.size(), kMaxListAfterBytes));
    }
    const std::string& store_prefix = client_.location().prefix;
    S3Call call{.method = "GET", .max_answer_bytes = kMaxListBytes};
    call.query = {{"list-type", "2"}, {"max-keys", std::to_string(limit)}, {"encoding-type", "url"}};
    // An object may have the name of the prefix alone: tools make such objects for "folders".
    const std::string begin = fmt::format("{}{}", store_prefix, after);
    if (!begin.empty()) call.query.emplace_back("start-after", begin);
    const std::string wanted = fmt::format("{}{}", store_prefix, prefix);
    if (!wanted.empty()) call.query.emplace_back("prefix", wanted);
    if (auto status = client_.Run(call); !status.ok()) return status;
    auto page = s3::ParseList(call.exchange.answer, store_prefix, prefix, after);
    if (page.ok()) return page;
    return absl::Status(page.status().code(),
                        fmt::format("{}: {}", url(), std::string(page.status().message())));
  }

  absl::Status Delete(std::string_view name) override {
    if (auto status = CheckBlobName(name); !status.ok()) return status;
    S3Call call{.method = "DELETE", .name = std::string(name)};
    const absl::Status status = client_.Run(call);
    return status.code() == absl::StatusCode::kNotFound ? absl::OkStatus() : status;
  }

  absl::StatusOr<BlobInfo> Stat(std::string_view name) override {
    if (auto status = CheckBlobName(name); !status.ok()) return status;
    S3Call call{.method = "HEAD", .name = std::string(name), .headers = {{"x-amz-checksum-mode", "ENABLED"}}};
    if (const absl::Status failed = client_.Run(call); !failed.ok()) return Explained(name, failed);
    const auto size = s3::ContentLength(call.exchange);
    if (!size) return absl::DataLossError(fmt::format("{}: HEAD {}: the answer has no length", url(), name));
    BlobInfo info{.size = *size, .checksum = s3::ChecksumOf(call.exchange)};
    // moto leaves out the number of pieces, and does not say that there are several.
    if (info.size > kBlobPieceBytes && info.checksum.find('-') == std::string::npos) info.checksum.clear();
    return info;
  }

 private:
  static absl::Status Append(std::string_view part, uint64_t max_bytes, std::string& bytes) {
    if (part.size() > max_bytes - bytes.size())
      return absl::DataLossError("the server sends more than was asked for");
    bytes += part;
    return absl::OkStatus();
  }

  absl::Status Exists(std::string_view name) const {
    return absl::AlreadyExistsError(fmt::format("{}: PUT {}: there is a blob of this name", url(), name));
  }

  /// The answer to a HEAD has no body to say why it failed, so a GET asks again.
  absl::Status Explained(std::string_view name, const absl::Status& failed) {
    if (failed.code() == absl::StatusCode::kUnavailable ||
        failed.code() == absl::StatusCode::kDeadlineExceeded ||
        failed.code() == absl::StatusCode::kCancelled) {
      return failed;
    }
    const absl::Status status = GetRange(name, 0, 1).status();
    return status.ok() ? failed : status;
  }

  /// Decides what became of a put whose answer was lost, and which was then told that there is a blob: it is
  /// this put's if it has the same bytes.
  absl::StatusOr<BlobInfo> OwnOrError(std::string_view name, const BlobInfo& sent,
                                      const absl::Status& error) {
    const auto there = Stat(name);
    if (!there.ok()) return there.status().code() == absl::StatusCode::kNotFound ? error : there.status();
    if (there->size != sent.size) return Exists(name);
    if (!there->checksum.empty())
      return there->checksum == sent.checksum ? absl::StatusOr<BlobInfo>(sent) : Exists(name);
    const absl::Status same = Read(name, sent, [](uint64_t, std::string_view) { return absl::OkStatus(); });
    if (same.ok()) return sent;
    return same.code() == absl::StatusCode::kDataLoss ? Exists(name) : same;
  }

  S3Client client_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BlobStore>> OpenS3Store(std::string_view url, const S3Options& options) {
  auto location = s3::LocateS3(url, options);
  if (!location.ok()) return location.status();
  if (options.parallel_reads < 1 || options.parallel_reads > 64) {
    return absl::InvalidArgumentError(
        fmt::format("parallel_reads: {}; 1 to 64 are allowed", options.parallel_reads));
  }
  if (options.stall_timeout_ms < 1000) {
    return absl::InvalidArgumentError(
        fmt::format("stall_timeout_ms: {}; at least 1000 are allowed", options.stall_timeout_ms));
  }
  // Missing credentials are reported now, not hours later at the first backup.
  if (const auto found = s3::CredentialSource(options.credentials_file, options.profile).Current();
      !found.ok()) {
    return found.status();
  }
  return std::make_unique<S3Store>(*std::move(location), options);
}

}  // namespace kvstore
