#pragma once

#include <absl/base/thread_annotations.h>
#include <openssl/ssl.h>

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/file_state.h"
#include "base/mutex.h"
#include "kvstore_api/connect.h"

namespace kvstore::cached {

/// The certificates with which connections to cache servers are encrypted (TLS 1.2 and 1.3). The server's
/// certificate is always verified. Thread-safe.
class TlsClient {
 public:
  /// files  `ca` is empty for the authorities that the system trusts.
  explicit TlsClient(ClientTls files) : files_(std::move(files)) {}

  /// Returns what a new connection is encrypted with. The files are read again when they have changed; if
  /// they cannot be used then, those of before stay in force. INVALID_ARGUMENT names the file that cannot be
  /// used, and why.
  absl::StatusOr<std::shared_ptr<SSL_CTX>> Context();
  /// The name that the certificate of the server at "host:port" must have.
  std::string NameOf(const std::string& address) const;

 private:
  using FileStates = std::array<std::optional<FileState>, 3>;
  FileStates StatesNow() const;
  absl::StatusOr<std::shared_ptr<SSL_CTX>> Load() const;

  const ClientTls files_;
  Mutex mutex_;
  FileStates loaded_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<SSL_CTX> context_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kvstore::cached
