#pragma once

#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kvstore::server {

using RequestParser = boost::beast::http::request_parser<boost::beast::http::buffer_body>;

/// The head of a request. Strings are as they came.
struct RequestHead {
  std::string method;
  std::string target;
  bool is_http10 = false;
  bool keep_alive = false;
  bool expects_continue = false;  ///< The client waits for "100 Continue" before it sends the body.
  bool chunked = false;
  uint64_t content_length = 0;  ///< 0 if the body is chunked.
  std::string host;             ///< As in the header of that name, with its port.
  std::string origin;           ///< The origin of the web page that asks; empty: no web page does.
  bool is_cross_site = false;   ///< A browser says that a page of another site asks.
  std::string asked_method;     ///< In a preflight request, the method that the page would use.
  std::string authorization;
  /// Kv-Timeout-Ms: how long the client waits.
  std::optional<std::chrono::milliseconds> timeout;
  std::string request_id;      ///< Kv-Request-Id: kRequestIdBytes bytes; empty: there is none.
  std::string first_instance;  ///< Kv-First-Instance: the bytes of Core::instance; empty: there is none.
  std::string last_event_id;   ///< Last-Event-ID, of a browser that follows something again; or empty.

  std::string if_none_match;  ///< If-None-Match: tags of a file that the client has; or empty.
  bool takes_gzip = false;    ///< The answer may be compressed.

  bool has_body() const { return chunked || content_length > 0; }
};

inline constexpr std::string_view kHeadMethod = "HEAD";

/// Reads the head that a parser has parsed. INVALID_ARGUMENT names the header that is missing or wrong.
absl::StatusOr<RequestHead> ReadHead(const RequestParser& parser);

}  // namespace kvstore::server
