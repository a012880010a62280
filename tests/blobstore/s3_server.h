#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "blobstore/s3_options.h"
#include "tests/support/certificates.h"
#include "tests/support/temp_dir.h"

namespace kvstore::testing {

/// A real S3 server on a port of its own that verifies signatures and checksums: versitygw if ./dev could
/// build it (Go 1.25), else moto. It has one empty bucket.
class S3Server {
 public:
  /// Whether ./dev has installed one of them.
  static bool IsInstalled();

  /// Starts it and returns when it serves. Throws std::runtime_error if it does not.
  ///
  /// tls  Its certificate; null: it speaks HTTP in plain text. versitygw alone has TLS.
  explicit S3Server(const Authority::Files* tls = nullptr);
  ~S3Server();
  S3Server(const S3Server&) = delete;
  S3Server& operator=(const S3Server&) = delete;

  /// Whether it is versitygw.
  static bool IsVersity();
  /// "s3://BUCKET/PREFIX"
  static std::string Url(const std::string& prefix) { return "s3://" + std::string(kBucket) + "/" + prefix; }
  /// How to reach it. Retries end soon.
  S3Options options() const;
  /// Writes a credentials file with other keys, and returns its path.
  std::string CredentialsFile(const std::string& name, const std::string& key_id,
                              const std::string& secret) const;
  std::string key_id() const { return "AKIDTESTTESTTESTTEST"; }
  std::string secret() const { return "secret/of+the=tests"; }

 private:
  static constexpr const char* kBucket = "test-bucket";
  bool Answers() const;

  const TempDir dir_;
  const uint16_t port_;
  const bool has_tls_;
  pid_t process_ = -1;
};

}  // namespace kvstore::testing
