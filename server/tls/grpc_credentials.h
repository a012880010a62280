#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <optional>
#include <string>

namespace kvstore::server {

/// A certificate, its key and an authority, as the texts of PEM files.
struct Pem {
  std::string cert;  ///< Followed by those that lead to its authority.
  std::string key;
  std::optional<std::string> client_ca;  ///< Of clients' certificates; without it they need none.
};

/// Credentials of a gRPC server, made of texts that can be replaced while it serves.
///
/// Of what changes gRPC 1.51 can watch files, and nothing else; and from files that cannot be used, or do not
/// belong together for a moment, it would make credentials with which no client can connect. Therefore it is
/// given files in memory, whose content was checked. Externally synchronised.
class GrpcCredentials {
 public:
  explicit GrpcCredentials(const Pem& pem);

  /// Connections have these texts from the next second on. Whether clients need certificates stays as it was.
  void Replace(const Pem& pem);
  const std::shared_ptr<grpc::ServerCredentials>& credentials() const { return credentials_; }

 private:
  /// A file without a name, at a path that only this process can read.
  class MemoryFile {
   public:
    explicit MemoryFile(const std::string& text);
    ~MemoryFile();
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    /// Whoever opens the path gets either the old text or the new one.
    void Replace(const std::string& text);
    std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

   private:
    const int descriptor_;
  };

  MemoryFile cert_;
  MemoryFile key_;
  MemoryFile client_ca_;
  std::shared_ptr<grpc::ServerCredentials> credentials_;
};

}  // namespace kvstore::server
