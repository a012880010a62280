#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "blobstore/sigv4.h"

namespace kvstore::s3 {

/// Where the keys of a bucket come from: a file, or the environment (S3Options). Thread-safe. No error and no
/// log line holds a secret.
class CredentialSource {
 public:
  /// file  Empty: the environment.
  CredentialSource(std::filesystem::path file, std::string profile)
      : file_(std::move(file)), profile_(std::move(profile)) {}

  /// Returns the keys that are valid now. A file is read again if it has changed.
  ///
  /// FAILED_PRECONDITION if the environment has no keys, or if anybody but the file's owner can read it;
  /// INVALID_ARGUMENT, with the line, if the file is malformed or has no such profile; NOT_FOUND or
  /// UNAVAILABLE if it cannot be read.
  absl::StatusOr<Credentials> Current();

 private:
  const std::filesystem::path file_;
  const std::string profile_;
  Mutex mutex_;
  Credentials read_ ABSL_GUARDED_BY(mutex_);
  struct stat read_from_ ABSL_GUARDED_BY(mutex_) = {};  // the file that read_ was read from
};

/// Returns the keys of a section of a credentials file. INVALID_ARGUMENT names the line, never its text.
absl::StatusOr<Credentials> ParseCredentials(std::string_view text, std::string_view profile);

}  // namespace kvstore::s3
