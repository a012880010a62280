#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// AWS Signature Version 4, for requests that carry their signature in a header. Pure functions; thread-safe.
/// Source: https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
///
/// libcurl has a signer too, but that of Debian 12 (7.88) neither sorts nor encodes queries.
namespace kvstore::s3 {

/// Names and values, not encoded. A name may occur again.
using Fields = std::vector<std::pair<std::string, std::string>>;

struct Credentials {
  std::string key_id;
  std::string secret;
  std::string session_token;  ///< Empty: none.
};

/// A request as it is signed.
struct SignedRequest {
  std::string_view method;          ///< "GET"
  std::string_view path;            ///< Not encoded; begins with '/'.
  Fields query;                     ///< In any order.
  Fields headers;                   ///< All that are to be signed, with "host" and "x-amz-date".
  std::string_view payload_sha256;  ///< The SHA-256 of the body, as lower-case hexadecimal digits.
};

/// Where a signature is valid.
struct SigningScope {
  std::string_view region;
  std::string_view service;  ///< "s3"
};

/// Returns the text with all bytes but A-Z, a-z, 0-9, '-', '.', '_' and '~' as %XX; in a path '/' is kept,
/// too.
std::string UriEncoded(std::string_view text, bool is_path);

/// Returns the encoded, sorted query of a URL, without '?'.
std::string CanonicalQuery(const Fields& query);

/// Returns the canonical form of a request, whose hash is signed.
std::string CanonicalRequest(const SignedRequest& request);

/// Returns a time in ms since 1970 as "20130524T000000Z", the form of "x-amz-date".
std::string AmzDate(uint64_t time_ms);

/// Returns the value of the header "authorization" of a request.
///
/// date  The value of its "x-amz-date".
std::string Authorization(const SignedRequest& request, const Credentials& credentials,
                          const SigningScope& scope, std::string_view date);

}  // namespace kvstore::s3
