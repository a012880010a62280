#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "blobstore/s3_location.h"
#include "blobstore/sigv4.h"

namespace kvstore::s3 {

/// A request as it is sent.
struct S3Request {
  std::string url;
  std::vector<std::string> headers;  ///< "NAME: VALUE"
};

/// A request before it is signed.
struct UnsignedS3Request {
  std::string_view method;  ///< "GET"
  std::string_view name;    ///< The name of a blob, without the prefix; empty: the bucket itself.
  Fields query;
  Fields headers;                ///< Besides those that every request has.
  std::string_view body_sha256;  ///< As lower-case hexadecimal digits.
};

/// Makes the request for a blob of a bucket, signed for a time in ms since 1970. A pure function;
/// thread-safe.
S3Request SignRequest(const S3Location& location, const Credentials& credentials,
                      const UnsignedS3Request& asked, uint64_t now_ms);

}  // namespace kvstore::s3
