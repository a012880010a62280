#include "server/resp/tls.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "base/files.h"

namespace kvstore::server::resp {
namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

/// Reads the file of a field and hands it to `use`, which takes a buffer and an error.
template <typename Use>
absl::Status UsePem(std::string_view field, const std::filesystem::path& file, const Use& use) {
  const auto text = ReadFile(file);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("server.tls.{}: {}", field, std::string(text.status().message())));
  }
  error_code error;
  use(boost::asio::buffer(*text), error);
  if (!error) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("server.tls.{}: {} cannot be used: {}", field, file.string(), error.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ssl::context>> MakeTlsContext(const ServerTls& tls) {
  if (tls.cert.empty()) return std::unique_ptr<ssl::context>();
  auto context = std::make_unique<ssl::context>(ssl::context::tls_server);
  SSL_CTX* const native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  // A session that is resumed would not show its certificate again, and tickets save little where connections
  // last.
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(native, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_num_tickets(native, 0);
  auto status = UsePem("cert", tls.cert, [&](const auto& text, error_code& error) {
    context->use_certificate_chain(text, error);
  });
  if (!status.ok()) return status;
  status = UsePem("key", tls.key, [&](const auto& text, error_code& error) {
    context->use_private_key(text, ssl::context::pem, error);
  });
  if (!status.ok()) return status;
  if (tls.client_ca.empty()) return context;
  status = UsePem("client_ca", tls.client_ca, [&](const auto& text, error_code& error) {
    context->add_certificate_authority(text, error);
  });
  if (!status.ok()) return status;
  context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert);
  return context;
}

}  // namespace kvstore::server::resp
