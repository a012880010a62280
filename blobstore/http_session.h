#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace kvstore::s3 {

/// One attempt at an HTTP request, and what came of it. Must not move while it runs.
struct HttpExchange {
  // The request.
  std::string method;                ///< "GET", "HEAD", "PUT", "POST" or "DELETE".
  std::string url;                   ///< Encoded.
  std::vector<std::string> headers;  ///< "name: value"
  std::string_view body;             ///< The body of a PUT or POST; must outlive the exchange.
  uint32_t stall_timeout_ms = 20'000;

  // The answer.
  int status = 0;                                     ///< 0: none has arrived.
  std::map<std::string, std::string> answer_headers;  ///< Names in lower case.
  std::string answer;                                 ///< The body, unless on_bytes got it.
  size_t max_answer_bytes = size_t{64} << 10;         ///< The exchange fails if the body is larger.
  /// Gets the body of an answer with status 2xx instead, in parts; the headers are complete by then. Its
  /// error ends the exchange, and stands in `stopped`. May be null.
  std::function<absl::Status(std::string_view)> on_bytes;

  // How it ended.
  /// Whether (a part of) the body was sent before on a kept connection, which then ended without an answer.
  bool sent_before = false;
  bool failed = false;           ///< The connection failed, or the answer was refused; `failure` says why.
  std::string failure;           ///< One line for people.
  bool failed_for_good = false;  ///< Trying again can't help, as with a certificate that is not trusted.
  absl::Status stopped;          ///< The error of on_bytes, or that the answer is larger than allowed.

  /// Returns a header of the answer; empty if it was not sent.
  std::string Header(const std::string& name) const {
    const auto found = answer_headers.find(name);
    return found == answer_headers.end() ? "" : found->second;
  }
};

/// How all exchanges of a session connect.
struct HttpOptions {
  std::string ca_file;  ///< Empty: the system's authorities.
  uint32_t connect_timeout_ms = 10'000;
  bool no_proxy = false;   ///< Ignore the proxy that the environment names.
  size_t connections = 4;  ///< How many idle connections are kept.
};

/// Exchanges that run at the same time on one thread, over connections that are kept: libcurl's multi
/// interface. Certificates are verified, redirections are not followed, nothing is logged. Externally
/// synchronised.
class HttpSession {
 public:
  explicit HttpSession(const HttpOptions& options);
  ~HttpSession();
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  /// Begins an exchange, which must live until Wait returns it or EndAll was called.
  void Begin(HttpExchange& exchange);
  /// Moves bytes until an exchange has ended, and returns it; null when `until` has passed before.
  HttpExchange* Wait(std::chrono::steady_clock::time_point until);
  /// Ends all exchanges that still run, by closing their connections.
  void EndAll();

 private:
  struct Transfer;
  class Multi;

  /// Takes down how a transfer has ended, and forgets it.
  HttpExchange* Finish(void* easy, int code);

  const HttpOptions options_;
  const std::unique_ptr<Multi> multi_;
  std::map<void*, std::unique_ptr<Transfer>> transfers_;  // by easy handle
};

}  // namespace kvstore::s3
