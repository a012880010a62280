#include "server/tls/certificates.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/ssl.h>
#include <spdlog/spdlog.h>

#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "base/files.h"

namespace kvstore::server {
namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

/// Reads the file of a field into `text`, and has it used.
///
/// use  Takes a buffer and an error.
template <typename Use>
absl::Status UseFile(std::string_view field, const std::filesystem::path& file, std::string& text,
                     const Use& use) {
  auto read = ReadFile(file);
  if (!read.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("server.tls.{}: {}", field, std::string(read.status().message())));
  }
  text = *std::move(read);
  error_code error;
  use(boost::asio::buffer(text), error);
  if (!error) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("server.tls.{}: cannot use {}: {}", field, file.string(), error.message()));
}

/// Returns when the certificate of a context expires.
std::chrono::system_clock::time_point ExpiryOf(SSL_CTX* context) {
  std::tm time{};
  const X509* const certificate = SSL_CTX_get0_certificate(context);
  if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time) != 1) return {};
  return std::chrono::system_clock::from_time_t(::timegm(&time));
}

std::string DayOf(std::chrono::system_clock::time_point time) { return fmt::format("{:%F %T} UTC", time); }

}  // namespace

Certificates::FileStates Certificates::StatesOf(const ServerTls& files) {
  return {ReadFileState(files.cert), ReadFileState(files.key),
          files.client_ca.empty() ? std::nullopt : ReadFileState(files.client_ca)};
}

absl::StatusOr<Certificates::Content> Certificates::Read(const ServerTls& files) {
  Content content;
  content.context = std::make_shared<Context>(ssl::context::tls_server);
  Context& context = *content.context;
  error_code error;
  // A key that needs a password must not have OpenSSL ask for it at the terminal.
  context.set_password_callback([](size_t, ssl::context::password_purpose) { return std::string(); }, error);
  auto status = UseFile("cert", files.cert, content.pem.cert, [&](const auto& text, error_code& failed) {
    context.use_certificate_chain(text, failed);
  });
  if (!status.ok()) return status;
  // Also compares it with the certificate.
  status = UseFile("key", files.key, content.pem.key, [&](const auto& text, error_code& failed) {
    context.use_private_key(text, ssl::context::pem, failed);
  });
  if (!status.ok()) return status;
  if (!files.client_ca.empty()) {
    status = UseFile(
        "client_ca", files.client_ca, content.pem.client_ca.emplace(),
        [&](const auto& text, error_code& failed) { context.add_certificate_authority(text, failed); });
    if (!status.ok()) return status;
    // OpenSSL takes a file without a certificate, such as an empty one that is just being written.
    if (sk_X509_OBJECT_num(X509_STORE_get0_objects(SSL_CTX_get_cert_store(context.native_handle()))) == 0) {
      return absl::InvalidArgumentError(
          fmt::format("server.tls.client_ca: {} has no certificate", files.client_ca.string()));
    }
    context.set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert, error);
  }
  SSL_CTX* const native = context.native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native,
                      SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // The buffers of an idle connection would take 34 KB.
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  // Without it a client with a certificate could not resume its session.
  constexpr std::string_view kSessions = "kvstore";
  SSL_CTX_set_session_id_context(native, reinterpret_cast<const unsigned char*>(kSessions.data()),
                                 kSessions.size());
  content.expires = ExpiryOf(native);
  return content;
}

absl::StatusOr<std::unique_ptr<Certificates>> Certificates::Open(const ServerTls& files) {
  // The states are taken before the content: what is written in between is read the next time.
  const FileStates seen = StatesOf(files);
  auto content = Read(files);
  if (!content.ok()) return content.status();
  return std::unique_ptr<Certificates>(new Certificates(files, seen, *std::move(content)));
}

Certificates::Certificates(const ServerTls& files, const FileStates& seen, Content content)
    : files_(files),
      loaded_(seen),
      refused_(seen),
      grpc_(content.pem),
      context_(std::move(content.context)),
      expires_(content.expires) {}

void Certificates::Refresh() {
  const FileStates seen = StatesOf(files_);
  if (seen == loaded_ || (seen == refused_ && told_)) return;
  auto content = Read(files_);
  if (!content.ok()) {
    // Perhaps the certificate was replaced, and its key will be in a moment: that is not told at once.
    told_ = seen == refused_;
    refused_ = seen;
    if (told_) {
      spdlog::error("tls: refused, the certificate of before stays in force: {}",
                    std::string(content.status().message()));
    }
    return;
  }
  loaded_ = refused_ = seen;
  told_ = false;
  grpc_.Replace(content->pem);
  spdlog::info("tls: read again, the certificate is good until {}", DayOf(content->expires));
  const MutexLock lock(mutex_);
  context_ = std::move(content->context);
  expires_ = content->expires;
}

std::shared_ptr<Certificates::Context> Certificates::context() const {
  const MutexLock lock(mutex_);
  return context_;
}

std::chrono::system_clock::time_point Certificates::expires() const {
  const MutexLock lock(mutex_);
  return expires_;
}

}  // namespace kvstore::server
