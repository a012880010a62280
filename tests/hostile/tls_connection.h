#pragma once

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "tests/hostile/connection.h"

namespace kvstore::testing {

/// A TLS connection to a port of this machine, over which any bytes can be sent to a server that speaks
/// HTTP/2. It accepts every certificate. One thread may send while another one reads.
class TlsConnection {
 public:
  /// cert, key  PEM files that say who the client is; empty: nothing does.
  explicit TlsConnection(uint16_t port, const std::string& cert = "", const std::string& key = "")
      : connection_(port) {
    if (!cert.empty()) {
      EXPECT_EQ(SSL_use_certificate_chain_file(tls_.get(), cert.c_str()), 1);
      EXPECT_EQ(SSL_use_PrivateKey_file(tls_.get(), key.c_str(), SSL_FILETYPE_PEM), 1);
    }
    SSL_set_bio(tls_.get(), in_, out_);
    constexpr unsigned char kHttp2[] = {2, 'h', '2'};
    SSL_set_alpn_protos(tls_.get(), kHttp2, sizeof(kHttp2));
    SSL_set_connect_state(tls_.get());
    EXPECT_TRUE(ShakeHands()) << "the TLS handshake failed";
  }

  /// Returns false if the other side has closed the connection.
  bool Send(std::string_view text) {
    std::string encrypted;
    {
      const MutexLock lock(mutex_);
      const int size = static_cast<int>(text.size());
      if (SSL_write(tls_.get(), text.data(), size) != size) return false;
      encrypted = TakeOutput();
    }
    return connection_.Send(encrypted);
  }
  /// Ends both directions.
  void End() const { connection_.End(); }
  /// Waits for bytes, and returns those that have arrived; empty if the other side has closed the connection.
  std::string Read() {
    for (;;) {
      const std::string encrypted = connection_.Read();
      if (encrypted.empty()) return "";
      const MutexLock lock(mutex_);
      BIO_write(in_, encrypted.data(), static_cast<int>(encrypted.size()));
      std::string text;
      char buffer[4096];
      int size = 0;
      while ((size = SSL_read(tls_.get(), buffer, sizeof(buffer))) > 0) {
        text.append(buffer, static_cast<size_t>(size));
      }
      // A part of a record brings nothing yet, nor does a record of TLS itself.
      if (!text.empty() || SSL_get_error(tls_.get(), size) != SSL_ERROR_WANT_READ) return text;
    }
  }

 private:
  bool ShakeHands() {
    const MutexLock lock(mutex_);
    for (;;) {
      const int result = SSL_do_handshake(tls_.get());
      if (!connection_.Send(TakeOutput())) return false;
      if (result == 1) return true;
      if (SSL_get_error(tls_.get(), result) != SSL_ERROR_WANT_READ) return false;
      const std::string more = connection_.Read();
      if (more.empty()) return false;
      BIO_write(in_, more.data(), static_cast<int>(more.size()));
    }
  }

  /// Returns what TLS has to send.
  std::string TakeOutput() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::string text(BIO_ctrl_pending(out_), '\0');
    if (!text.empty()) BIO_read(out_, text.data(), static_cast<int>(text.size()));
    return text;
  }

  const Connection connection_;
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{SSL_CTX_new(TLS_client_method()),
                                                                   &SSL_CTX_free};
  /// OpenSSL reads from and writes to memory, so that nobody waits for the other side with the lock.
  const std::unique_ptr<SSL, decltype(&SSL_free)> tls_{SSL_new(context_.get()), &SSL_free};
  BIO* const in_ = BIO_new(BIO_s_mem());  // tls_ owns both
  BIO* const out_ = BIO_new(BIO_s_mem());
  Mutex mutex_;  // guards what the four pointers above point to
};

}  // namespace kvstore::testing
