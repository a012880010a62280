#include "server/http/tls_context.h"

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <string>
#include <string_view>

namespace kvstore::server {
namespace {

namespace ssl = boost::asio::ssl;

absl::Status CannotUse(std::string_view field, const std::filesystem::path& file,
                       const boost::system::error_code& error) {
  return absl::InvalidArgumentError(
      fmt::format("server.tls.{}: cannot use {}: {}", field, file.string(), error.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ssl::context>> MakeTlsContext(const ServerTls& tls) {
  if (tls.cert.empty()) return nullptr;
  auto context = std::make_unique<ssl::context>(ssl::context::tls_server);
  boost::system::error_code error;
  // A key that needs a password must not have OpenSSL ask for it at the terminal.
  context->set_password_callback([](size_t, ssl::context::password_purpose) { return std::string(); }, error);
  context->use_certificate_chain_file(tls.cert.string(), error);
  if (error) return CannotUse("cert", tls.cert, error);
  context->use_private_key_file(tls.key.string(), ssl::context::pem, error);
  if (error) return CannotUse("key", tls.key, error);
  if (!tls.client_ca.empty()) {
    context->load_verify_file(tls.client_ca.string(), error);
    if (error) return CannotUse("client_ca", tls.client_ca, error);
    context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert, error);
    if (error) return CannotUse("client_ca", tls.client_ca, error);
  }
  SSL_CTX* const native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native,
                      SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // The buffers of an idle connection would take 34 KB.
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  // Without it a client with a certificate could not resume its session.
  constexpr std::string_view kSessions = "kvstore";
  SSL_CTX_set_session_id_context(native, reinterpret_cast<const unsigned char*>(kSessions.data()),
                                 kSessions.size());
  return context;
}

}  // namespace kvstore::server
