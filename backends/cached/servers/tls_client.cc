#include "backends/cached/servers/tls_client.h"

#include <fmt/format.h>
#include <openssl/err.h>

#include <string_view>

#include "base/address.h"

namespace kvstore::cached {
namespace {

/// The error of a file, with the first reason that OpenSSL has noted.
absl::Status FileError(std::string_view field, const std::string& file) {
  const char* const reason = ERR_reason_error_string(ERR_get_error());
  ERR_clear_error();
  return absl::InvalidArgumentError(fmt::format("tls.{}: cannot use '{}': {}", field, file,
                                                reason == nullptr ? "the system gives no reason" : reason));
}

}  // namespace

absl::StatusOr<std::shared_ptr<SSL_CTX>> TlsClient::Context() {
  const FileStates states = StatesNow();
  const MutexLock lock(mutex_);
  if (context_ != nullptr && states == loaded_) return context_;
  auto context = Load();
  if (!context.ok() && context_ == nullptr) return context.status();
  if (context.ok()) context_ = *std::move(context);
  loaded_ = states;
  return context_;
}

std::string TlsClient::NameOf(const std::string& address) const {
  return files_.server_name.empty() ? HostOf(address).value_or("") : files_.server_name;
}

TlsClient::FileStates TlsClient::StatesNow() const {
  FileStates states;
  size_t place = 0;
  for (const std::string& file : {files_.ca, files_.cert, files_.key}) {
    if (!file.empty()) states.at(place) = ReadFileState(file);
    ++place;
  }
  return states;
}

absl::StatusOr<std::shared_ptr<SSL_CTX>> TlsClient::Load() const {
  ERR_clear_error();
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  if (context == nullptr) return absl::InternalError("tls: OpenSSL cannot make a context");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  if (files_.ca.empty()) {
    SSL_CTX_set_default_verify_paths(context.get());
  } else if (SSL_CTX_load_verify_file(context.get(), files_.ca.c_str()) != 1) {
    return FileError("ca", files_.ca);
  }
  if (files_.cert.empty() != files_.key.empty()) {
    return absl::InvalidArgumentError("tls: cert and key belong together, and one of them is missing");
  }
  if (files_.cert.empty()) return context;
  if (SSL_CTX_use_certificate_chain_file(context.get(), files_.cert.c_str()) != 1) {
    return FileError("cert", files_.cert);
  }
  // A key with a passphrase is refused, instead of asking for it on the terminal.
  SSL_CTX_set_default_passwd_cb(context.get(), [](char*, int, int, void*) { return 0; });
  if (SSL_CTX_use_PrivateKey_file(context.get(), files_.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return FileError("key", files_.key);
  }
  return context;
}

}  // namespace kvstore::cached
