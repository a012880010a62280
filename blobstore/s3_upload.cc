#include "blobstore/s3_upload.h"

#include <fmt/format.h>

#include <chrono>
#include <future>
#include <vector>

#include "base/markup.h"
#include "blobstore/blob_checksum.h"
#include "blobstore/s3_answers.h"
#include "blobstore/xml.h"

namespace kvstore::s3 {
namespace {

/// S3 puts the parts of a large upload together before it answers, and sends hardly a byte meanwhile.
constexpr uint32_t kCompleteStallMs = 600'000;
/// How long an upload that has failed may take to be aborted, after the caller's time is over.
constexpr std::chrono::seconds kAbortTime{10};
constexpr size_t kMaxUploadIdBytes = 2048;

/// One multipart upload.
class Uploader {
 public:
  Uploader(S3Client& client, std::string_view name, PutMode mode)
      : client_(client), name_(name), mode_(mode) {}

  UploadResult Run(std::string first, std::string second, const BlobSource& source) {
    UploadResult result;
    result.status = Create();
    if (!result.status.ok()) return result;
    result.status = SendAll(std::move(first), std::move(second), source);
    result.sent = {.size = size_, .checksum = BlobChecksum(digests_)};
    if (result.status.ok()) result.status = Complete(result);
    if (!result.status.ok()) Abort();
    return result;
  }

 private:
  absl::Status Create() {
    S3Call call{.method = "POST", .name = std::string(name_), .query = {{"uploads", ""}}};
    call.headers = {{"content-type", "application/octet-stream"}, {"x-amz-checksum-algorithm", "SHA256"}};
    if (auto status = client_.Run(call); !status.ok()) return status;
    const auto answer = ParseXml(call.exchange.answer);
    if (!answer.ok()) return answer.status();
    id_ = answer->TextOf("UploadId");
    if (!id_.empty() && id_.size() <= kMaxUploadIdBytes) return absl::OkStatus();
    return absl::DataLossError(
        fmt::format("{}: POST {}: the answer has no UploadId", client_.location().url, name_));
  }

  /// Sends piece after piece, and reads the next one meanwhile.
  absl::Status SendAll(std::string piece, std::string next, const BlobSource& source) {
    std::future<absl::Status> reading;
    std::string ahead = std::move(next);
    while (!piece.empty()) {
      if (auto status = SendPart(piece); !status.ok()) {
        if (reading.valid()) reading.wait();
        return status;
      }
      if (reading.valid()) {
        if (auto status = reading.get(); !status.ok()) return status;
      }
      piece.swap(ahead);
      // A short piece was the last one.
      if (piece.size() < kBlobPieceBytes) {
        ahead.clear();
      } else {
        reading = std::async(std::launch::async, [&source, &ahead] { return ReadPiece(source, ahead); });
      }
    }
    return absl::OkStatus();
  }

  absl::Status SendPart(const std::string& piece) {
    if (size_ + piece.size() > kMaxBlobBytes) {
      return absl::InvalidArgumentError(
          fmt::format("{}: PUT {}: the blob has more than {} bytes, which is the most allowed",
                      client_.location().url, name_, kMaxBlobBytes));
    }
    const Sha256Digest digest = Sha256Of(piece);
    S3Call call = PutCall(name_, piece, digest);
    call.query = {{"partNumber", std::to_string(digests_.size() + 1)}, {"uploadId", id_}};
    if (auto status = client_.Run(call); !status.ok()) {
      if (status.code() != absl::StatusCode::kNotFound) return status;
      return absl::UnavailableError(
          fmt::format("{}: PUT {}: somebody has aborted the upload", client_.location().url, name_));
    }
    digests_.push_back(digest);
    size_ += piece.size();
    parts_ += fmt::format(
        "<Part><PartNumber>{}</PartNumber><ETag>{}</ETag><ChecksumSHA256>{}</ChecksumSHA256></Part>",
        digests_.size(), EscapeMarkup(call.exchange.Header("etag")), ChecksumHeader(digest));
    return absl::OkStatus();
  }

  absl::Status Complete(UploadResult& result) {
    const std::string body = fmt::format(
        "<CompleteMultipartUpload "
        "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{}</CompleteMultipartUpload>",
        parts_);
    S3Call call{.method = "POST", .name = std::string(name_), .query = {{"uploadId", id_}}, .body = body};
    call.headers = {{"content-type", "application/xml"}};
    if (mode_ == PutMode::kIfAbsent) call.headers.emplace_back("if-none-match", "*");
    call.stall_timeout_ms = kCompleteStallMs;
    call.error_may_be_in_body = true;
    absl::Status status = client_.Run(call);
    result.may_be_done = call.may_be_done;
    if (!status.ok()) return status;
    const auto answer = ParseXml(call.exchange.answer);
    const std::string checksum = answer.ok() ? ChecksumFrom(answer->TextOf("ChecksumSHA256")) : "";
    if (checksum.find('-') == std::string::npos || checksum == result.sent.checksum) return absl::OkStatus();
    return absl::DataLossError(fmt::format(
        "{}: POST {}: the server has put together other bytes than were sent: its checksum is {}, not {}",
        client_.location().url, name_, checksum, result.sent.checksum));
  }

  /// Has the server forget the parts, which would be paid for otherwise. If that fails too, a rule of the
  /// bucket has to (README.md).
  void Abort() {
    S3Call call{.method = "DELETE", .name = std::string(name_), .query = {{"uploadId", id_}}};
    client_.Run(call, CallLimits{.deadline = CallLimits::Clock::now() + kAbortTime}).IgnoreError();
  }

  S3Client& client_;
  const std::string_view name_;
  const PutMode mode_;
  std::string id_;
  std::vector<Sha256Digest> digests_;  // of the parts that were sent
  std::string parts_;                  // what Complete says of them
  uint64_t size_ = 0;
};

}  // namespace

S3Call PutCall(std::string_view name, std::string_view bytes, const Sha256Digest& digest) {
  S3Call call{.method = "PUT", .name = std::string(name), .body = bytes, .body_sha256 = Hex(digest)};
  call.headers = {{"content-type", "application/octet-stream"},
                  {"x-amz-checksum-sha256", ChecksumHeader(digest)},
                  {"x-amz-sdk-checksum-algorithm", "SHA256"}};
  return call;
}

UploadResult Upload(S3Client& client, std::string_view name, std::string first, std::string second,
                    const BlobSource& source, PutMode mode) {
  return Uploader(client, name, mode).Run(std::move(first), std::move(second), source);
}

absl::Status ReadPiece(const BlobSource& source, std::string& piece) {
  piece.resize(kBlobPieceBytes);
  size_t size = 0;
  while (size < piece.size()) {
    const auto read = source(std::span(piece).subspan(size));
    if (!read.ok()) return read.status();
    if (*read == 0) break;
    size += *read;
  }
  piece.resize(size);
  return absl::OkStatus();
}

}  // namespace kvstore::s3
