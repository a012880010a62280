#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kvstore {

/// Encryption of the connections to a server. The files are PEM. They are read when the server starts, and
/// again when they have changed, for the connections that are made then.
struct ServerTls {
  std::filesystem::path cert;  ///< The server's certificate, and those that lead to its authority.
  std::filesystem::path key;
  std::filesystem::path
      client_ca;  ///< Clients must present a certificate of this authority; empty: they need none.
};

/// How much a server has in flight before it refuses calls, and how long it waits for what.
struct ServerLimits {
  // Where callers are told apart, by tokens or certificates, one of them may have half of these two.
  /// Open at a time; more are refused with RESOURCE_EXHAUSTED. Each call over a stream of calls counts; the
  /// stream itself does not.
  size_t max_calls = 1'000;
  size_t max_bytes = size_t{256} << 20;  ///< Requests and answers in memory, all together.
  size_t threads = 32;                   ///< Workers, for calls that may wait.
  /// Workers for calls on reports, each of which runs on one from its beginning to its end. Where callers are
  /// told apart, one of them may have half.
  size_t report_threads = 8;
  size_t query_bytes = size_t{128} << 20;  ///< Memory that a query of reports may take.
  uint32_t call_ms =
      60'000;  ///< The longest that a call may take; streams and compactions have no such limit.
  uint32_t stall_ms = 30'000;      ///< A call is ended when its client takes nothing for so long.
  uint32_t idle_ms = 3'600'000;    ///< A connection of the Redis protocol without commands for so long is
                                   ///< closed; 0: none is.
  uint32_t drain_ms = 10'000;      ///< How long a server that stops waits for calls in flight.
  size_t remembered = 100'000;     ///< How many answers of writes are kept for retries ...
  uint32_t remember_ms = 600'000;  ///< ... and for how long.
};

/// The work that a server does in the background for the reports of its store (reports/maintenance.h).
struct ServerReports {
  std::string dataset = "reports";  ///< The dataset that has them, if there is one.
  uint32_t maintain_ms = 300'000;   ///< From one round to the next; 0: nothing is done.
  uint32_t share = 10;              ///< Percent of one processor's time, 1..100.
  uint32_t quiet_ms = 600'000;      ///< Roll-ups are made of rows that were not written to for so long.
};

struct ServerOptions {
  /// "host:port", "[ipv6]:port" or "unix:/path". An address that other machines can reach needs TLS, and
  /// tokens or client certificates, unless `insecure` is set.
  std::vector<std::string> listen = {"127.0.0.1:7400"};
  /// Where /metrics, /healthz and /readyz are served over HTTP, "host:port"; empty: nowhere.
  std::string http;
  /// Allows `http` to be an address that other machines can reach, in plain text. Its pages show figures, and
  /// names of backends and hosts.
  bool http_open = false;
  /// Where the Redis protocol is served (docs/redis.md), in the forms of `listen` and by its rules; empty:
  /// nowhere.
  std::string resp;
  /// Where the store is served over HTTP/1.1 as JSON, "host:port"; empty: nowhere. TLS, tokens and client
  /// certificates are those of `listen`, and so is what an address that other machines can reach needs.
  std::string http_api;
  /// The origins ("https://app.example") whose pages a browser lets read answers of `http_api` (CORS); "*":
  /// all.
  std::vector<std::string> http_origins;
  ServerTls tls;                 ///< Without a cert connections are not encrypted.
  std::filesystem::path tokens;  ///< The list of callers and their rights (docs/security.md). It is read
                                 ///< again when it changes. Empty: everybody may do everything.
  bool insecure = false;         ///< Serve other machines without TLS and authentication.
  uint32_t slow_ms = 200;        ///< Calls that take at least so long are logged; 0: none is.
  ServerLimits limits;
  ServerReports reports;

  /// Returns whether callers are told apart. Where they are not, there is nobody to protect from one of them.
  bool TellsCallersApart() const { return !tokens.empty() || !tls.client_ca.empty(); }
};

}  // namespace kvstore
