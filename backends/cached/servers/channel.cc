#include "backends/cached/servers/channel.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "backends/cached/servers/tls_client.h"

namespace kvstore::cached {
namespace {

constexpr size_t kRecordBytes = size_t{16} << 10;

bool IsIpAddress(const std::string& name) {
  in6_addr address{};
  return inet_pton(AF_INET, name.c_str(), &address) == 1 || inet_pton(AF_INET6, name.c_str(), &address) == 1;
}

/// Has a session refuse certificates that are not of `name`. Returns false if it would not: OpenSSL checks no
/// name at all then.
bool ExpectName(SSL& session, const std::string& name) {
  if (name.empty()) return false;
  if (IsIpAddress(name)) {
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(&session), name.c_str()) == 1;
  }
  return SSL_set1_host(&session, name.c_str()) == 1 && SSL_set_tlsext_host_name(&session, name.c_str()) == 1;
}

/// The error of a session, by what OpenSSL has noted.
absl::Status TlsError(const SSL& session) {
  const long verified = SSL_get_verify_result(&session);
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  if (verified != X509_V_OK) {
    return absl::UnavailableError(
        fmt::format("its certificate is refused: {}", X509_verify_cert_error_string(verified)));
  }
  if (ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == SSL_R_WRONG_VERSION_NUMBER) {
    return absl::UnavailableError("does not speak TLS on this port");
  }
  const char* const reason = ERR_reason_error_string(error);
  return absl::UnavailableError(fmt::format("TLS: {}", reason == nullptr ? "failed" : reason));
}

}  // namespace

absl::StatusOr<Channel> Channel::Connect(const ServerOptions& options) {
  const auto end = std::chrono::steady_clock::now() + options.timeout;
  auto socket = Socket::Connect(options.address, options.timeout);
  if (!socket.ok()) return socket.status();
  Channel channel(*std::move(socket));
  if (options.tls == nullptr) return channel;
  const auto context = options.tls->Context();
  if (!context.ok()) return context.status();
  channel.EndAt(end);
  if (auto status = channel.Encrypt(**context, options.tls->NameOf(options.address)); !status.ok()) {
    if (!absl::IsCancelled(status)) return status;
    return absl::UnavailableError("has closed the connection before it was encrypted");
  }
  return channel;
}

absl::Status Channel::Encrypt(SSL_CTX& context, const std::string& name) {
  session_.reset(SSL_new(&context));
  BIO* const in = BIO_new(BIO_s_mem());
  BIO* const out = BIO_new(BIO_s_mem());
  if (session_ == nullptr || in == nullptr || out == nullptr) return absl::UnavailableError("TLS: no memory");
  SSL_set_bio(session_.get(), in, out);
  if (!ExpectName(*session_, name)) {
    ERR_clear_error();
    return absl::UnavailableError(
        fmt::format("TLS: '{}' is not a name that a certificate can be checked for; set server_name", name));
  }
  for (;;) {
    ERR_clear_error();
    const int done = SSL_connect(session_.get());
    if (done == 1) return Flush();
    if (auto status = Help(done); !status.ok()) return status;
  }
}

absl::Status Channel::Flush() {
  char* bytes = nullptr;
  BIO* const out = SSL_get_wbio(session_.get());
  const long size = BIO_get_mem_data(out, &bytes);
  if (size <= 0) return absl::OkStatus();
  auto status = socket_.Send({bytes, static_cast<size_t>(size)});
  BIO_reset(out);
  return status;
}

absl::Status Channel::Help(int result) {
  const int need = SSL_get_error(session_.get(), result);
  if (need == SSL_ERROR_ZERO_RETURN) return absl::CancelledError("has closed the connection");
  if (need != SSL_ERROR_WANT_READ && need != SSL_ERROR_WANT_WRITE) {
    absl::Status error = TlsError(*session_);
    // The alert that tells the server why; if it cannot be sent, the connection is closed anyway.
    Flush().IgnoreError();
    return error;
  }
  if (auto status = Flush(); !status.ok()) return status;
  if (need == SSL_ERROR_WANT_WRITE) return absl::OkStatus();
  arrived_.clear();
  if (auto status = socket_.Receive(arrived_); !status.ok()) return status;
  BIO_write(SSL_get_rbio(session_.get()), arrived_.data(), static_cast<int>(arrived_.size()));
  return absl::OkStatus();
}

absl::Status Channel::CheckUnused() {
  if (!HasPending()) return absl::OkStatus();
  return absl::CancelledError("has closed the connection, or answers more than it was asked");
}

bool Channel::HasPending() {
  if (session_ == nullptr) return socket_.HasPending();
  if (socket_.HasPending()) {
    // Tickets are smaller than what one call receives, which bounds what is taken in here.
    arrived_.clear();
    if (!socket_.Receive(arrived_).ok() || socket_.HasPending()) return true;
    BIO_write(SSL_get_rbio(session_.get()), arrived_.data(), static_cast<int>(arrived_.size()));
  }
  const auto has_bytes = [this] {
    return SSL_has_pending(session_.get()) == 1 || BIO_ctrl_pending(SSL_get_rbio(session_.get())) > 0;
  };
  if (!has_bytes()) return false;
  char byte = 0;
  ERR_clear_error();
  const int seen = SSL_peek(session_.get(), &byte, 1);
  return seen > 0 || SSL_get_error(session_.get(), seen) != SSL_ERROR_WANT_READ || has_bytes();
}

absl::Status Channel::Send(std::string_view bytes) {
  if (session_ == nullptr) return socket_.Send(bytes);
  while (!bytes.empty()) {
    ERR_clear_error();
    const int sent =
        SSL_write(session_.get(), bytes.data(), static_cast<int>(std::min(bytes.size(), kRecordBytes)));
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (auto status = Help(sent); !status.ok()) {
      return status;
    }
  }
  return Flush();
}

absl::Status Channel::Receive(std::string& bytes) {
  if (session_ == nullptr) return socket_.Receive(bytes);
  const size_t before = bytes.size();
  for (;;) {
    bytes.resize(before + kRecordBytes);
    ERR_clear_error();
    const int received = SSL_read(session_.get(), bytes.data() + before, kRecordBytes);
    bytes.resize(before + static_cast<size_t>(std::max(received, 0)));
    if (received > 0) return absl::OkStatus();
    if (auto status = Help(received); !status.ok()) return status;
  }
}

}  // namespace kvstore::cached
