#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "backends/cached/servers/server.h"
#include "backends/cached/servers/socket.h"

namespace kvstore::cached {

/// A connection to a cache server, encrypted or not, whose calls end in time. Externally synchronised.
class Channel {
 public:
  /// Connects to `options.address`, with TLS if `options.tls` is set. All of it takes no longer than
  /// `options.timeout`. UNAVAILABLE if that fails, and says what was wrong with the server's certificate.
  static absl::StatusOr<Channel> Connect(const ServerOptions& options);

  // Both fail with CANCELLED if the other side has closed the connection.

  /// Sends all of the bytes.
  absl::Status Send(std::string_view bytes);
  /// Appends what has arrived to `bytes`, at least one byte and at most some 16 KiB.
  absl::Status Receive(std::string& bytes);
  /// CANCELLED if the connection must not be used for another request: bytes have arrived that nobody has
  /// asked for, which Receive would take for its answer, or the other side has closed it. Never waits. What
  /// TLS itself sends after the handshake (the tickets of TLS 1.3) is taken in, and is no reason.
  absl::Status CheckUnused();
  /// From now on, Send and Receive fail about at this time.
  void EndAt(std::chrono::steady_clock::time_point end) { socket_.EndAt(end); }

 private:
  using Session = std::unique_ptr<SSL, void (*)(SSL*)>;

  explicit Channel(Socket socket) : socket_(std::move(socket)), session_(nullptr, SSL_free) {}
  absl::Status Encrypt(SSL_CTX& context, const std::string& name);
  /// Returns whether something has arrived, or the connection has ended. Never waits.
  bool HasPending();
  /// Sends what the session has encrypted.
  absl::Status Flush();
  /// Does what the session needs before a call of it that returned `result` can go on: nothing but sending
  /// and receiving. An error if the call has failed for good.
  absl::Status Help(int result);

  Socket socket_;
  Session session_;  // null: not encrypted. It reads and writes memory, as OpenSSL's own writes to sockets
                     // raise SIGPIPE and have no end in time.
  std::string arrived_;
};

}  // namespace kvstore::cached
