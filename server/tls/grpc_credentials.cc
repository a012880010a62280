#include "server/tls/grpc_credentials.h"

#include <fcntl.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace kvstore::server {
namespace {

/// How often gRPC looks at its files, in seconds.
constexpr unsigned kLookEvery = 1;

/// Returns the descriptor of a file with this text; -1 if there is none, which the log tells.
int MakeFile(const std::string& text) {
  const int made = ::memfd_create("kvstore-tls", MFD_CLOEXEC);
  size_t written = 0;
  while (made >= 0 && written < text.size()) {
    const ssize_t some = ::write(made, text.data() + written, text.size() - written);
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) break;
    written += static_cast<size_t>(some);
  }
  if (made >= 0 && written == text.size()) return made;
  spdlog::error("tls: no memory for a certificate: {}", std::strerror(errno));
  if (made >= 0) ::close(made);
  return -1;
}

}  // namespace

GrpcCredentials::MemoryFile::MemoryFile(const std::string& text) : descriptor_(MakeFile(text)) {}

GrpcCredentials::MemoryFile::~MemoryFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void GrpcCredentials::MemoryFile::Replace(const std::string& text) {
  const int made = MakeFile(text);
  if (made < 0) return;
  ::dup3(made, descriptor_, O_CLOEXEC);
  ::close(made);
}

GrpcCredentials::GrpcCredentials(const Pem& pem)
    : cert_(pem.cert), key_(pem.key), client_ca_(pem.client_ca.value_or("")) {
  using grpc::experimental::FileWatcherCertificateProvider;
  const bool wants_clients = pem.client_ca.has_value();
  const auto files =
      wants_clients ? std::make_shared<FileWatcherCertificateProvider>(key_.path(), cert_.path(),
                                                                       client_ca_.path(), kLookEvery)
                    : std::make_shared<FileWatcherCertificateProvider>(key_.path(), cert_.path(), kLookEvery);
  grpc::experimental::TlsServerCredentialsOptions options(files);
  options.watch_identity_key_cert_pairs();
  if (wants_clients) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  credentials_ = grpc::experimental::TlsServerCredentials(options);
}

void GrpcCredentials::Replace(const Pem& pem) {
  key_.Replace(pem.key);
  cert_.Replace(pem.cert);
  if (pem.client_ca) client_ca_.Replace(*pem.client_ca);
}

}  // namespace kvstore::server
