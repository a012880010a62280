#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "blobstore/s3_options.h"

namespace kvstore::s3 {

/// Where the objects of a store are.
struct S3Location {
  std::string url;  ///< "s3://BUCKET/PREFIX", for people.
  std::string bucket;
  std::string prefix;  ///< The beginning of the names of all objects: empty, or "PREFIX/".
  std::string region;

  std::string server;     ///< "https://HOST[:PORT]"; with the bucket in HOST unless it is in the path.
  std::string host;       ///< The header "host": HOST, with the port unless it is the scheme's own.
  std::string path;       ///< "/", or "/BUCKET/".
  bool is_local = false;  ///< Whether the server is on this machine.
};

/// Reads the URL of a bucket, and takes what the options leave open from the environment. INVALID_ARGUMENT
/// names the part that is wrong.
absl::StatusOr<S3Location> LocateS3(std::string_view url, const S3Options& options);

}  // namespace kvstore::s3
