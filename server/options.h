#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kvstore {

/// Encryption of the connections to a server; the files are PEM, read at start.
struct ServerTls {
  std::filesystem::path cert;  ///< The server's certificate, with those that lead to its authority.
  std::filesystem::path key;
  std::filesystem::path
      client_ca;  ///< Clients must have a certificate of this authority; empty: they need none.
};

/// What a server takes on before it turns calls away, and how long it is patient.
struct ServerLimits {
  // Where callers are told apart, by tokens or certificates, one of them takes at most half of these two.
  size_t max_calls = 1'000;              ///< Calls at a time; more are RESOURCE_EXHAUSTED.
  size_t max_bytes = size_t{256} << 20;  ///< Their requests and answers, added up.
  size_t threads = 32;                   ///< That make calls which may wait.
  uint32_t call_ms = 60'000;             ///< The longest that a call takes, but for streams and compactions.
  uint32_t stall_ms = 30'000;            ///< A stream whose client takes nothing for so long is ended.
  uint32_t drain_ms = 10'000;            ///< At its end the server waits so long for calls in flight.
  size_t remembered = 100'000;           ///< Writes whose answers are kept for a repeated attempt ...
  uint32_t remember_ms = 600'000;        ///< ... for so long.
};

struct ServerOptions {
  /// "host:port", "[ipv6]:port" or "unix:/path". Beyond loopback TLS and tokens or client certificates are a
  /// must, unless `insecure`.
  std::vector<std::string> listen = {"127.0.0.1:7400"};
  /// Where /metrics, /healthz and /readyz are served by HTTP, "host:port"; empty: nowhere.
  std::string http;
  /// Let `http` be reached from other machines, in plain text: what it shows are figures, and names of
  /// backends and hosts.
  bool http_open = false;
  ServerTls tls;  ///< No cert: not encrypted.
  std::filesystem::path
      tokens;              ///< Who may do what: docs/security.md. Read again when it changes. Empty: all may.
  bool insecure = false;   ///< Serve beyond loopback without.
  uint32_t slow_ms = 200;  ///< Calls that take longer are logged; 0: none is.
  ServerLimits limits;
};

}  // namespace kvstore
