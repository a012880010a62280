#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "blobstore/blob_store.h"
#include "blobstore/http_session.h"
#include "blobstore/sha256.h"

/// Reads S3's answers, and checks them: the server may be broken or hostile.
namespace kvstore::s3 {

/// Returns the digest in the form of the header "x-amz-checksum-sha256".
std::string ChecksumHeader(const Sha256Digest& digest);

/// Returns the checksum of a blob (BlobChecksum) from the form that S3 has for it, Base64 or Base64-PIECES;
/// empty if the text has neither.
std::string ChecksumFrom(std::string_view text);

/// Returns the checksum of the whole blob that the headers of an answer hold; empty if they hold none.
std::string ChecksumOf(const HttpExchange& exchange);

/// Returns the length that an answer announces; nullopt if it announces none.
std::optional<uint64_t> ContentLength(const HttpExchange& exchange);

/// A header "content-range": "bytes FIRST-LAST/TOTAL".
struct ContentRange {
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t total = 0;
};
std::optional<ContentRange> ParseContentRange(std::string_view text);

/// Reads a page of a list (ListObjectsV2).
///
/// store_prefix  What the names of all objects of the store begin with; it is cut off.
/// prefix        What the names of the page must begin with after that.
/// after         The name after which the page begins.
///
/// DATA_LOSS if the answer is malformed, or its names are not in order, so that a list could go on for ever.
absl::StatusOr<BlobPage> ParseList(std::string_view xml, std::string_view store_prefix,
                                   std::string_view prefix, std::string_view after);

}  // namespace kvstore::s3
