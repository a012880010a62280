#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "blobstore/http_session.h"
#include "blobstore/s3_location.h"

namespace kvstore::s3 {

/// Why an exchange with S3 did not do what was asked.
struct S3Failure {
  absl::Status status;          ///< For the caller; see BlobStore. ALREADY_EXISTS: a condition did not hold.
                                ///< OUT_OF_RANGE: the blob ends before the range that was asked for.
  bool may_retry = false;       ///< Whether the same request may succeed later.
  uint32_t retry_after_ms = 0;  ///< How long the server asks to wait; 0: it did not say.
};

/// Returns why an exchange failed; nullopt if it succeeded. The server's text is truncated and put on one
/// line.
///
/// now_ms  The clock of this machine, in ms since 1970.
std::optional<S3Failure> FailureOf(const HttpExchange& exchange, const S3Location& location, uint64_t now_ms);

/// Returns the failure that the body of an answer with status 200 reports; nullopt if it reports none. S3 may
/// do so when it completes a multipart upload.
std::optional<S3Failure> FailureInBody(const HttpExchange& exchange, const S3Location& location,
                                       uint64_t now_ms);

/// Returns "2026-11-23T23:31:29.000Z" as ms since 1970, cut to seconds; nullopt if the text has another form.
std::optional<uint64_t> ParseTime(std::string_view text);

}  // namespace kvstore::s3
