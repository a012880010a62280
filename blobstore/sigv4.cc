#include "blobstore/sigv4.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>

#include "blobstore/sha256.h"

namespace kvstore::s3 {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

bool IsUnreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

/// Returns a header's value without spaces around it, and with one in place of several.
std::string WithoutSpareSpaces(std::string_view value) {
  std::string trimmed;
  for (const char c : value) {
    if (c == ' ' && (trimmed.empty() || trimmed.back() == ' ')) continue;
    trimmed += c;
  }
  if (trimmed.ends_with(' ')) trimmed.pop_back();
  return trimmed;
}

/// Returns the headers by lower-case name; values of the same name are joined, in their order.
std::map<std::string, std::string> CanonicalHeaders(const Fields& headers) {
  std::map<std::string, std::string> canonical;
  for (const auto& [name, value] : headers) {
    const auto [at, is_new] = canonical.try_emplace(LowerCase(name), WithoutSpareSpaces(value));
    if (!is_new) at->second += "," + WithoutSpareSpaces(value);
  }
  return canonical;
}

std::string SignedNames(const std::map<std::string, std::string>& headers) {
  std::string names;
  for (const auto& [name, value] : headers) names += (names.empty() ? "" : ";") + name;
  return names;
}

Sha256Digest SigningKey(std::string_view secret, std::string_view day, const SigningScope& scope) {
  const Sha256Digest of_day = HmacSha256(fmt::format("AWS4{}", secret), day);
  const Sha256Digest of_region = HmacSha256(Bytes(of_day), scope.region);
  const Sha256Digest of_service = HmacSha256(Bytes(of_region), scope.service);
  return HmacSha256(Bytes(of_service), "aws4_request");
}

}  // namespace

std::string UriEncoded(std::string_view text, bool is_path) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (IsUnreserved(c) || (is_path && c == '/')) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::string CanonicalQuery(const Fields& query) {
  // Fields are sorted as they are encoded.
  Fields encoded;
  for (const auto& [name, value] : query)
    encoded.emplace_back(UriEncoded(name, false), UriEncoded(value, false));
  std::sort(encoded.begin(), encoded.end());
  std::string text;
  for (const auto& [name, value] : encoded)
    text += fmt::format("{}{}={}", text.empty() ? "" : "&", name, value);
  return text;
}

std::string CanonicalRequest(const SignedRequest& request) {
  const auto headers = CanonicalHeaders(request.headers);
  std::string lines;
  for (const auto& [name, value] : headers) lines += fmt::format("{}:{}\n", name, value);
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, UriEncoded(request.path, true),
                     CanonicalQuery(request.query), lines, SignedNames(headers), request.payload_sha256);
}

std::string AmzDate(uint64_t time_ms) {
  const auto seconds = static_cast<time_t>(time_ms / 1000);
  tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec);
}

std::string Authorization(const SignedRequest& request, const Credentials& credentials,
                          const SigningScope& scope, std::string_view date) {
  const std::string_view day = date.substr(0, 8);
  const std::string credential_scope = fmt::format("{}/{}/{}/aws4_request", day, scope.region, scope.service);
  const std::string to_sign = fmt::format("{}\n{}\n{}\n{}", kAlgorithm, date, credential_scope,
                                          Hex(Sha256Of(CanonicalRequest(request))));
  const Sha256Digest key = SigningKey(credentials.secret, day, scope);
  return fmt::format("{} Credential={}/{}, SignedHeaders={}, Signature={}", kAlgorithm, credentials.key_id,
                     credential_scope, SignedNames(CanonicalHeaders(request.headers)),
                     Hex(HmacSha256(Bytes(key), to_sign)));
}

}  // namespace kvstore::s3
