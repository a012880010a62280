#include "server/http/http_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>

#include "backend_api/outcome.h"
#include "json/json_text.h"
#include "json_api/answers.h"
#include "server/call/quota.h"

namespace kvstore::server {
namespace {

/// How many seconds a client is asked to wait before it retries a call that was turned away.
constexpr int kRetryAfterS = 1;

std::string_view ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Internal Server Error";
  }
}

/// Returns the time now as HTTP writes it: "Sun, 06 Nov 1994 08:49:37 GMT".
std::string Date() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[utc.tm_wday], utc.tm_mday,
                     kMonths[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace

std::string WriteHead(const AnswerHead& head) {
  std::string text =
      fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n", head.status, ReasonOf(head.status), Date());
  // No browser may take an answer for a page.
  if (!head.type.empty())
    text += fmt::format("Content-Type: {}\r\nX-Content-Type-Options: nosniff\r\n", head.type);
  if (!head.type.empty() || head.status == 304) text += fmt::format("Cache-Control: {}\r\n", head.cache);
  if (!head.length) {
    text += "Transfer-Encoding: chunked\r\n";
  } else if (head.status != 204 && head.status != 304) {
    text += fmt::format("Content-Length: {}\r\n", *head.length);
  }
  text += head.keep_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
  if (!head.instance.empty()) text += fmt::format("Kv-Instance: {}\r\n", head.instance);
  if (!head.origin.empty()) {
    text += fmt::format(
        "Access-Control-Allow-Origin: {}\r\nVary: Origin\r\n"
        "Access-Control-Expose-Headers: Kv-Instance, Retry-After\r\n",
        head.origin);
  }
  text += head.more;
  text += "\r\n";
  return text;
}

int HttpStatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
      return 409;
    case absl::StatusCode::kFailedPrecondition:
      return 412;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

std::string LinesOf(const absl::Status& status) {
  const bool busy = absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
  // A client that retries by itself must not write twice what may have been written.
  if (busy && !IsInDoubt(status)) {
    const auto wait = std::chrono::ceil<std::chrono::seconds>(
        RetryAfter(status).value_or(std::chrono::seconds(kRetryAfterS)));
    return fmt::format("Retry-After: {}\r\n", std::max<int64_t>(wait.count(), kRetryAfterS));
  }
  if (absl::IsUnauthenticated(status)) return "WWW-Authenticate: Bearer\r\n";
  return "";
}

std::string BodyOf(const absl::Status& status) { return TextOf(json_api::ErrorToJson(status)) + "\n"; }

std::string ChunkOf(std::string_view bytes) { return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes); }

}  // namespace kvstore::server
