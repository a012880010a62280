#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kvstore {

/// Encryption of the connections to a server; the files are PEM.
struct ClientTls {
  std::string ca;  ///< File with the certificates that the server's is checked against; empty: the system's.
  std::string cert;  ///< Our own certificate and its key, where the server wants one; empty: none.
  std::string key;
  std::string server_name;  ///< The name in the server's certificate, if it is not the one in the address.
};

struct ConnectOptions {
  std::string token;  ///< Sent with each call ("authorization: Bearer TOKEN"); empty: none. Printable ASCII.
  std::optional<ClientTls> tls;  ///< None: not encrypted.
  /// Let the token also go over connections that are not encrypted to an address that is not this machine's,
  /// where whoever sees the packets has the token from then on.
  bool plain_token = false;
  /// Connections to the server, used by turns. One carries some 20,000 small calls a second.
  size_t connections = 2;
  /// How long a call may take, its retries included, where no CallScope says (call_scope.h).
  uint32_t deadline_ms = 10'000;
  /// For a server that shares its catalog with the one it calls: the backend that has the datasets by its
  /// own view. The other one refuses calls that it would have to send elsewhere. Empty: any.
  std::string backend;
};

}  // namespace kvstore
