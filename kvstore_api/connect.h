#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kvstore_api/kvstore.h"

namespace kvstore {

/// Encryption of the connections to a server; the files are PEM.
struct ClientTls {
  std::string ca;  ///< File with the certificates of trusted authorities; empty: those of the system.
  /// Files with the client's certificate and key, if the server requires one; empty: none.
  std::string cert;
  std::string key;
  std::string server_name;  ///< The name in the server's certificate, if it is not the one in the address.
};

struct ConnectOptions {
  std::string token;  ///< Sent with each call ("authorization: Bearer TOKEN"); empty: none. Printable ASCII.
  std::optional<ClientTls> tls;  ///< None: not encrypted.
  /// Send the token even over unencrypted connections to other machines. Whoever can read the packets can use
  /// the token from then on.
  bool plain_token = false;
  /// Connections to the server, used in turn. One carries some 20,000 small calls a second.
  size_t connections = 2;
  /// How long a call without a CallScope (call_scope.h) may take, its retries included.
  uint32_t deadline_ms = 10'000;
  /// For a server that uses another one as a backend and shares the catalog with it: the backend on which its
  /// catalog has the datasets. The other server refuses calls that its own catalog would send elsewhere.
  /// Empty: no check.
  std::string backend;
  /// Called when an attempt of a call was lost, because the server cannot be reached or the connection broke,
  /// before the next attempt: with the error, and the time that is left for retries (nothing: the call has no
  /// deadline). It is called by the thread that makes the call, so perhaps by several at a time. Null: nobody
  /// is told.
  std::function<void(const absl::Status& error, std::optional<std::chrono::milliseconds> left)> on_lost;
};

/// Returns the store behind a server, with the same interface as in process (`kvstore::Open`). Returns at
/// once: the connection is made when it is needed, and made again when it is lost.
///
/// address  "host:port", "[ipv6]:port" or "unix:/path".
///
/// INVALID_ARGUMENT for a malformed address, a file of the TLS options that cannot be read, a token that is
/// not printable ASCII (a byte order mark in front of it is ignored), and a token that would be sent to
/// another machine unencrypted, unless ConnectOptions::plain_token allows that.
///
///   auto store = kvstore::Connect("127.0.0.1:7400");
///   if (!store.ok()) return store.status();
///   auto row = (*store)->GetRow("events", "user:7", {});
///
/// Over the network the interface differs in this:
/// - DEADLINE_EXCEEDED after the time that the call's CallScope allows (call_scope.h), or without one after
///   ConnectOptions::deadline_ms. Scans, Compact, and PutRows of more than 4 MiB or 2,000 rows, have no
///   deadline without a CallScope.
/// - Calls are retried until the deadline, with growing pauses, when a connection is lost, or when the server
///   refuses them because it has too many. That includes writes, which carry a request ID by which the server
///   recognises a retry. A server that was restarted meanwhile cannot: then the write fails with UNAVAILABLE,
///   and may or may not have happened. Creating an object is idempotent in that case, too.
/// - Pages end at kMaxWireBytes. A scan that loses its server continues by itself after the last row.
/// - UpdateObject runs its transform in this process, and writes the result if nobody else has written the
///   object meanwhile; otherwise it starts again.
/// - UNAUTHENTICATED and PERMISSION_DENIED.
/// - INTERNAL for a server whose answer does not fit the request (more or fewer entries, another object, a
///   page that does not advance). Answers are not trusted in other ways either: they take no more memory than
///   a few times kMaxAnswerBytes, and are not decompressed.
absl::StatusOr<std::unique_ptr<KVStore>> Connect(const std::string& address,
                                                 const ConnectOptions& options = {});

}  // namespace kvstore
