#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace kvstore {

/// How to reach a bucket of S3, or of another vendor who speaks its protocol.
struct S3Options {
  /// "https://HOST[:PORT]". Empty: the environment's AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL; else AWS.
  /// "http://" is allowed for an address of this machine only.
  std::string endpoint;
  /// Empty: the environment's AWS_REGION or AWS_DEFAULT_REGION; else "us-east-1".
  std::string region;
  /// Whether the bucket's name stands in the path of URLs instead of in the host's name. Unset: yes with an
  /// endpoint, as other vendors want it, and for bucket names with a '.', which no certificate covers; else
  /// no.
  std::optional<bool> path_style;
  /// A file as AWS's tools have it: "[default]", then lines "aws_access_key_id = ...", "aws_secret_access_key
  /// =
  /// ..." and, for temporary keys, "aws_session_token = ...". Only its owner may be able to read it. It is
  /// read again when it has changed. Empty: the environment's AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
  /// AWS_SESSION_TOKEN.
  std::filesystem::path credentials_file;
  std::string profile = "default";  ///< The section of credentials_file.
  /// A PEM file with the authorities that may certify the endpoint. Empty: the system's.
  std::string ca_file;

  /// How many pieces of one blob are read at once; 1 to 64.
  size_t parallel_reads = 4;
  uint32_t connect_timeout_ms = 10'000;
  /// An attempt ends when fewer than 1,024 bytes a second have moved for this long; at least 1,000.
  uint32_t stall_timeout_ms = 20'000;
  /// A request that may succeed later (no connection, a stall, a status 5xx or 429, a checksum that does not
  /// match) is retried until this long after the first failure since the last progress.
  uint32_t retry_for_ms = 60'000;
  /// The delay before retry n is chosen at random, from 0 to this times 2^n, and to at most ten seconds
  /// ("full jitter"), so that clients that failed together do not come back together.
  uint32_t retry_base_ms = 100;
};

}  // namespace kvstore
