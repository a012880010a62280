#include "blobstore/s3_errors.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

#include "blobstore/xml.h"

namespace kvstore::s3 {
namespace {

constexpr uint32_t kLongestRetryAfterMs = 10'000;

/// An error, as an answer reports it.
struct Refusal {
  int status = 0;
  std::string code;     // of S3, such as "NoSuchKey"; empty: none, as in the answer to a HEAD
  std::string said;     // "503 SlowDown: Please reduce your request rate."
  XmlElement document;  // empty if the answer has no XML
};

template <size_t n>
bool IsOneOf(std::string_view code, const std::array<std::string_view, n>& codes) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

constexpr std::array<std::string_view, 3> kUnknownKey = {"InvalidAccessKeyId", "XAdminUserNotFound",
                                                         "InvalidClientTokenId"};
constexpr std::array<std::string_view, 3> kBadToken = {"ExpiredToken", "InvalidToken",
                                                       "TokenRefreshRequired"};
constexpr std::array<std::string_view, 3> kElsewhere = {"AuthorizationHeaderMalformed", "PermanentRedirect",
                                                        "TemporaryRedirect"};
constexpr std::array<std::string_view, 5> kFull = {"QuotaExceeded", "XMinioStorageFull",
                                                   "XMinioAdminBucketQuotaExceeded", "InsufficientStorage",
                                                   "InsufficientCapacity"};
constexpr std::array<std::string_view, 3> kBadDigest = {"BadDigest", "XAmzContentSHA256Mismatch",
                                                        "InvalidDigest"};
constexpr std::array<std::string_view, 4> kPassing = {"RequestTimeout", "IncompleteBody", "SlowDown",
                                                      "InternalError"};
constexpr std::array<std::string_view, 3> kConflict = {"ConditionalRequestConflict", "OperationAborted", ""};

/// Returns a server's text on one line and not too long.
std::string Shown(std::string_view text, size_t most) {
  std::string shown(text.substr(0, most));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c >= 0x7F; }, '?');
  return shown;
}

Refusal ReadRefusal(const HttpExchange& exchange) {
  Refusal refusal{.status = exchange.status};
  refusal.said = fmt::format("{}", exchange.status);
  if (exchange.answer.empty()) return refusal;
  auto parsed = ParseXml(exchange.answer);
  if (!parsed.ok()) return refusal;
  refusal.document = *std::move(parsed);
  refusal.code = Shown(refusal.document.TextOf("Code"), 64);
  refusal.said += fmt::format(" {}: {}", refusal.code, Shown(refusal.document.TextOf("Message"), 200));
  return refusal;
}

std::string Described(uint64_t ms) {
  const uint64_t seconds = ms / 1000;
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 7200) return fmt::format("{} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{} h {} min", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{} days", seconds / 86400);
}

absl::Status ClockError(const HttpExchange& exchange, const Refusal& refusal, uint64_t now_ms) {
  std::optional<uint64_t> theirs = ParseTime(refusal.document.TextOf("ServerTime"));
  if (!theirs) {
    const time_t date = curl_getdate(exchange.Header("date").c_str(), nullptr);
    if (date >= 0) theirs = static_cast<uint64_t>(date) * 1000;
  }
  if (!theirs)
    return absl::FailedPreconditionError("this machine's clock and the server's are too far apart");
  const bool is_ahead = now_ms > *theirs;
  return absl::FailedPreconditionError(fmt::format("this machine's clock is {} {} the server's; set it",
                                                   Described(is_ahead ? now_ms - *theirs : *theirs - now_ms),
                                                   is_ahead ? "ahead of" : "behind"));
}

absl::Status RegionError(const HttpExchange& exchange, const Refusal& refusal, const S3Location& location) {
  std::string region = exchange.Header("x-amz-bucket-region");
  if (region.empty()) region = refusal.document.TextOf("Region");
  if (region.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("the bucket cannot be reached at {} in the region {}: {}", location.server,
                    location.region, refusal.said));
  }
  return absl::FailedPreconditionError(
      fmt::format("the bucket is in the region {}, and requests are made to {}: set the region",
                  Shown(region, 64), location.region));
}

/// Errors that the caller, or an operator, must do something about.
absl::Status StatusOf(const HttpExchange& exchange, const Refusal& refusal, const S3Location& location,
                      uint64_t now_ms) {
  const std::string& code = refusal.code;
  const int status = refusal.status;
  if (IsOneOf(code, kUnknownKey)) {
    return absl::UnauthenticatedError(fmt::format("{} does not know the access key", location.server));
  }
  if (code == "SignatureDoesNotMatch") {
    return absl::UnauthenticatedError("the secret is not the one of the access key");
  }
  if (IsOneOf(code, kBadToken))
    return absl::UnauthenticatedError(
        fmt::format("the session token is not valid (any more): {}", refusal.said));
  if (code == "RequestTimeTooSkewed" || code == "RequestExpired")
    return ClockError(exchange, refusal, now_ms);
  if (code == "NoSuchBucket") {
    return absl::FailedPreconditionError(
        fmt::format("the bucket {} does not exist at {}; create it, or correct the URL", location.bucket,
                    location.server));
  }
  if (IsOneOf(code, kElsewhere) || status == 301 || status == 307 || status == 308)
    return RegionError(exchange, refusal, location);
  if (status == 507 || IsOneOf(code, kFull))
    return absl::ResourceExhaustedError(fmt::format("the store is full: {}", refusal.said));
  if (IsOneOf(code, kBadDigest))
    return absl::DataLossError(fmt::format("bytes were changed on the way: {}", refusal.said));
  if (status == 401 || status == 403) {
    return absl::PermissionDeniedError(fmt::format("the access key lacks a right: {}", refusal.said));
  }
  if (status == 404) return absl::NotFoundError("there is no such blob");
  if (status == 412) return absl::AlreadyExistsError("there is a blob of this name");
  if (status == 416) return absl::OutOfRangeError("the blob ends before");
  return absl::FailedPreconditionError(fmt::format("the server refuses the request: {}", refusal.said));
}

bool MayRetry(const Refusal& refusal) {
  const int status = refusal.status;
  if (status == 501 || status == 505 || status == 507 || IsOneOf(refusal.code, kFull)) return false;
  if (status == 409) return IsOneOf(refusal.code, kConflict);
  return status >= 500 || status == 429 || status == 408 || status < 200 ||
         IsOneOf(refusal.code, kBadDigest) || IsOneOf(refusal.code, kPassing);
}

uint32_t RetryAfterMs(const HttpExchange& exchange) {
  const std::string text = exchange.Header("retry-after");
  uint32_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size()) return 0;
  return std::min(seconds, kLongestRetryAfterMs / 1000) * 1000;
}

S3Failure FailureFrom(const HttpExchange& exchange, const Refusal& refusal, const S3Location& location,
                      uint64_t now_ms) {
  S3Failure failure{.may_retry = MayRetry(refusal)};
  const bool is_plain = failure.may_retry && !IsOneOf(refusal.code, kBadDigest);
  failure.status = is_plain
                       ? absl::UnavailableError(fmt::format("{} answers {}", location.server, refusal.said))
                       : StatusOf(exchange, refusal, location, now_ms);
  failure.retry_after_ms = RetryAfterMs(exchange);
  return failure;
}

}  // namespace

std::optional<uint64_t> ParseTime(std::string_view text) {
  tm utc{};
  // The fraction, which some servers leave out, does not matter.
  const std::string seconds(text.substr(0, 19));
  const char* const end = ::strptime(seconds.c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
  if (end == nullptr || *end != '\0' || !text.ends_with('Z')) return std::nullopt;
  const time_t time = ::timegm(&utc);
  if (time < 0) return std::nullopt;
  return static_cast<uint64_t>(time) * 1000;
}

std::optional<S3Failure> FailureOf(const HttpExchange& exchange, const S3Location& location,
                                   uint64_t now_ms) {
  if (!exchange.stopped.ok()) return S3Failure{.status = exchange.stopped};
  // A server that refuses a large body may close the connection while it is still being sent.
  const bool has_refused = exchange.status >= 400 && !exchange.answer.empty();
  if (exchange.failed && !has_refused) {
    return S3Failure{
        .status = absl::UnavailableError(fmt::format("{}: {}", location.server, exchange.failure)),
        .may_retry = !exchange.failed_for_good};
  }
  if (exchange.status / 100 == 2) return std::nullopt;
  return FailureFrom(exchange, ReadRefusal(exchange), location, now_ms);
}

std::optional<S3Failure> FailureInBody(const HttpExchange& exchange, const S3Location& location,
                                       uint64_t now_ms) {
  Refusal refusal = ReadRefusal(exchange);
  if (refusal.document.name != "Error") return std::nullopt;
  // The status that S3 would have sent, had it known of the failure when it began to answer.
  refusal.status = refusal.code == "PreconditionFailed" ? 412
                   : refusal.code.starts_with("NoSuch") ? 404
                                                        : 500;
  return FailureFrom(exchange, refusal, location, now_ms);
}

}  // namespace kvstore::s3
