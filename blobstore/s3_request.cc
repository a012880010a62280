#include "blobstore/s3_request.h"

#include <fmt/format.h>

namespace kvstore::s3 {

S3Request SignRequest(const S3Location& location, const Credentials& credentials,
                      const UnsignedS3Request& asked, uint64_t now_ms) {
  const std::string path =
      asked.name.empty() ? location.path : location.path + location.prefix + std::string(asked.name);
  const std::string date = AmzDate(now_ms);
  Fields headers = asked.headers;
  headers.emplace_back("host", location.host);
  headers.emplace_back("x-amz-content-sha256", asked.body_sha256);
  headers.emplace_back("x-amz-date", date);
  if (!credentials.session_token.empty())
    headers.emplace_back("x-amz-security-token", credentials.session_token);
  const SignedRequest request{.method = asked.method,
                              .path = path,
                              .query = asked.query,
                              .headers = headers,
                              .payload_sha256 = asked.body_sha256};
  headers.emplace_back("authorization", Authorization(request, credentials,
                                                      {.region = location.region, .service = "s3"}, date));

  S3Request signed_request{.url = location.server + UriEncoded(path, true), .headers = {}};
  if (!asked.query.empty()) signed_request.url += "?" + CanonicalQuery(asked.query);
  for (const auto& [name, value] : headers)
    signed_request.headers.push_back(fmt::format("{}: {}", name, value));
  return signed_request;
}

}  // namespace kvstore::s3
