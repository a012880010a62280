#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <optional>
#include <string>

namespace kvstore::server {

/// A certificate, its key and an authority, as the texts of PEM files.
struct Pem {
  std::string cert;  ///< The certificate, followed by those that lead to its authority.
  std::string key;
  std::optional<std::string>
      client_ca;  ///< The authority of clients' certificates; without it clients need none.
};

/// Credentials of a gRPC server, made of texts that can be replaced while it serves.
///
/// gRPC 1.51 takes new texts only from files that it watches. From files that cannot be used, or that do not
/// belong together for a moment, it would make credentials with which no client can connect. Therefore it is
/// given files in memory, whose content was checked. Externally synchronised.
class GrpcCredentials {
 public:
  explicit GrpcCredentials(const Pem& pem);

  /// Connections that are made from the next second on use these texts. Whether clients need certificates
  /// stays as it was.
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
