#include "server/http/request_head.h"

#include <fmt/format.h>

#include <boost/beast/http/rfc7230.hpp>
#include <charconv>
#include <string_view>

#include "kvstore_api/limits.h"

namespace kvstore::server {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;

/// The longest time that a client may say it waits.
constexpr uint64_t kMaxTimeoutMs = 86'400'000;

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

std::string Value(const http::fields& fields, http::field name) { return std::string(View(fields[name])); }
std::string Value(const http::fields& fields, std::string_view name) {
  return std::string(View(fields[beast::string_view(name.data(), name.size())]));
}

/// Reads bytes as hexadecimal digits, between which there may be hyphens, as in a UUID. Nothing if they are
/// not kRequestIdBytes.
std::optional<std::string> ReadId(std::string_view text) {
  std::string bytes;
  std::string digits;
  for (const char c : text) {
    if (c != '-') digits += c;
  }
  if (digits.size() != 2 * kRequestIdBytes) return std::nullopt;
  for (size_t i = 0; i < digits.size(); i += 2) {
    uint8_t byte = 0;
    const char* const end = digits.data() + i + 2;
    const auto [parsed, error] = std::from_chars(digits.data() + i, end, byte, 16);
    if (error != std::errc() || parsed != end) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

absl::Status ReadIdHeader(const http::fields& fields, std::string_view name, std::string& id) {
  const std::string text = Value(fields, name);
  if (text.empty()) return absl::OkStatus();
  auto bytes = ReadId(text);
  if (!bytes) {
    return absl::InvalidArgumentError(
        fmt::format("{}: must be {} hexadecimal digits, as a UUID has", name, 2 * kRequestIdBytes));
  }
  id = *std::move(bytes);
  return absl::OkStatus();
}

absl::Status ReadTimeout(const http::fields& fields, std::optional<std::chrono::milliseconds>& timeout) {
  const std::string text = Value(fields, "Kv-Timeout-Ms");
  if (text.empty()) return absl::OkStatus();
  uint64_t ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
  if (error != std::errc() || end != text.data() + text.size() || ms < 1 || ms > kMaxTimeoutMs) {
    return absl::InvalidArgumentError(
        fmt::format("Kv-Timeout-Ms: must be a whole number from 1 to {}", kMaxTimeoutMs));
  }
  timeout = std::chrono::milliseconds(ms);
  return absl::OkStatus();
}

/// The parser takes the last coding alone for how long the body is. Somebody in front of this server might
/// read other codings in another way, and so see other requests than this server does.
absl::Status CheckCoding(const http::fields& fields, bool chunked, bool is_http10) {
  const auto count = fields.count(http::field::transfer_encoding);
  if (count > 0 && is_http10)
    return absl::InvalidArgumentError("Transfer-Encoding: HTTP/1.0 has none; say Content-Length");
  if (count > 1 ||
      (count == 1 && !(chunked && beast::iequals(fields[http::field::transfer_encoding], "chunked")))) {
    return absl::InvalidArgumentError("Transfer-Encoding: must be \"chunked\", once, or not there");
  }
  const beast::string_view content = fields[http::field::content_encoding];
  if (!content.empty() && !beast::iequals(content, "identity")) {
    return absl::InvalidArgumentError("Content-Encoding: bodies must not be compressed");
  }
  return absl::OkStatus();
}

/// Returns whether an Accept-Encoding has gzip among its codings, and does not refuse it ("gzip;q=0").
bool TakesGzip(std::string_view accepted) {
  const http::ext_list codings(beast::string_view(accepted.data(), accepted.size()));
  for (const auto& [coding, parameters] : codings) {
    if (!beast::iequals(coding, "gzip")) continue;
    for (const auto& [name, value] : parameters) {
      // A quality has up to three digits after the point.
      if (beast::iequals(name, "q") && value.find_first_not_of("0.") == beast::string_view::npos)
        return false;
    }
    return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<RequestHead> ReadHead(const RequestParser& parser) {
  const auto& message = parser.get();
  RequestHead head;
  head.method = View(message.method_string());
  head.target = View(message.target());
  head.is_http10 = message.version() < 11;
  head.keep_alive = parser.keep_alive();
  head.chunked = parser.chunked();
  head.content_length = parser.content_length().value_or(0);
  head.host = Value(message, http::field::host);
  head.origin = Value(message, http::field::origin);
  const std::string site = Value(message, "Sec-Fetch-Site");
  head.is_cross_site = !site.empty() && site != "same-origin" && site != "none";
  head.asked_method = Value(message, http::field::access_control_request_method);
  head.authorization = Value(message, http::field::authorization);
  head.expects_continue = beast::iequals(message[http::field::expect], "100-continue");
  if (message.count(http::field::host) != 1 && !head.is_http10)
    return absl::InvalidArgumentError("Host: must be there, once");
  // A request with two of them is refused, because a proxy in front may have looked at the other one.
  for (const http::field field : {http::field::authorization, http::field::origin}) {
    if (message.count(field) > 1) {
      return absl::InvalidArgumentError(
          fmt::format("{}: must not be there twice", std::string(http::to_string(field))));
    }
  }
  if (auto status = CheckCoding(message, head.chunked, head.is_http10); !status.ok()) return status;
  head.last_event_id = Value(message, "Last-Event-ID");
  head.if_none_match = Value(message, http::field::if_none_match);
  head.takes_gzip = TakesGzip(Value(message, http::field::accept_encoding));
  if (auto status = ReadTimeout(message, head.timeout); !status.ok()) return status;
  if (auto status = ReadIdHeader(message, "Kv-Request-Id", head.request_id); !status.ok()) return status;
  if (auto status = ReadIdHeader(message, "Kv-First-Instance", head.first_instance); !status.ok())
    return status;
  return head;
}

}  // namespace kvstore::server
