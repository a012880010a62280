#pragma once

#include <absl/base/thread_annotations.h>

#include <array>
#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "base/file_state.h"
#include "base/mutex.h"
#include "server/call/options.h"
#include "server/tls/grpc_credentials.h"

namespace kvstore::server {

/// The server's certificate with its key, and the authority of its clients' certificates: what connections
/// over TLS 1.2 and 1.3 are encrypted with. Thread-safe, but for Refresh, which one thread calls.
class Certificates {
 public:
  using Context = boost::asio::ssl::context;

  /// Reads the files. INVALID_ARGUMENT names the one that cannot be used, and why.
  ///
  /// files  `cert` is not empty.
  static absl::StatusOr<std::unique_ptr<Certificates>> Open(const ServerTls& files);

  /// Reads the files again if they have changed, for connections that come from then on. Files that cannot be
  /// used, or do not belong together, are refused: those of before stay in force. The log tells both.
  void Refresh();

  /// Returns what a new connection is encrypted with.
  std::shared_ptr<Context> context() const;
  /// The same for gRPC's connections, which follow within a second.
  const std::shared_ptr<grpc::ServerCredentials>& grpc() const { return grpc_.credentials(); }
  /// Returns when the certificate expires.
  std::chrono::system_clock::time_point expires() const;

 private:
  using FileStates = std::array<std::optional<FileState>, 3>;
  /// The content of the files, checked.
  struct Content {
    Pem pem;
    std::shared_ptr<Context> context;
    std::chrono::system_clock::time_point expires;
  };

  Certificates(const ServerTls& files, const FileStates& seen, Content content);
  static absl::StatusOr<Content> Read(const ServerTls& files);
  static FileStates StatesOf(const ServerTls& files);

  const ServerTls files_;
  FileStates loaded_;   // touched by Refresh only
  FileStates refused_;  // the same
  bool told_ = false;   // whether the log has told of refused_
  GrpcCredentials grpc_;
  mutable Mutex mutex_;
  std::shared_ptr<Context> context_ ABSL_GUARDED_BY(mutex_);
  std::chrono::system_clock::time_point expires_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kvstore::server
