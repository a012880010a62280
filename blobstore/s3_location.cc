#include "blobstore/s3_location.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>

#include "base/address.h"
#include "blobstore/blob_name.h"

namespace kvstore::s3 {
namespace {

constexpr std::string_view kScheme = "s3://";

/// Returns the first of these that the environment has; empty if it has none.
std::string FromEnvironment(std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    if (const char* const value = std::getenv(name); value != nullptr && *value != '\0') return value;
  }
  return "";
}

bool IsLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

absl::Status CheckBucket(std::string_view bucket) {
  const bool is_good = bucket.size() >= 3 && bucket.size() <= 63 && IsLowerOrDigit(bucket.front()) &&
                       IsLowerOrDigit(bucket.back()) && bucket.find("..") == std::string_view::npos &&
                       std::all_of(bucket.begin(), bucket.end(),
                                   [](char c) { return IsLowerOrDigit(c) || c == '-' || c == '.'; });
  if (is_good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "bucket: a name has 3 to 63 lower-case letters, digits, '-' and '.', and begins and ends with a letter "
      "or digit");
}

absl::Status CheckRegion(std::string_view region) {
  const bool is_good = !region.empty() && region.size() <= 64 &&
                       std::all_of(region.begin(), region.end(),
                                   [](char c) { return IsLowerOrDigit(c) || c == '-' || c == '_'; });
  if (is_good) return absl::OkStatus();
  return absl::InvalidArgumentError("region: a name has 1 to 64 lower-case letters, digits, '-' and '_'");
}

/// The parts of "https://HOST:PORT".
struct Endpoint {
  std::string scheme;  // with "://"
  std::string host;    // with the port, unless it is the scheme's own
  bool is_local = false;
};

absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text) {
  const auto refused = [&](std::string_view problem) {
    return absl::InvalidArgumentError(
        fmt::format("endpoint: {}; it has the form https://HOST or https://HOST:PORT", problem));
  };
  Endpoint endpoint;
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (text.starts_with(scheme)) endpoint.scheme = scheme;
  }
  if (endpoint.scheme.empty()) return refused("it begins neither with https:// nor with http://");
  std::string_view host = text.substr(endpoint.scheme.size());
  if (host.ends_with('/')) host.remove_suffix(1);
  const bool is_good =
      !host.empty() && host.size() <= 300 && std::all_of(host.begin(), host.end(), [](char c) {
        return IsLowerOrDigit(c) || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == ':' || c == '[' ||
               c == ']';
      });
  if (!is_good) return refused("HOST is empty, or has a character that is not allowed");
  const bool is_plain = endpoint.scheme == "http://";
  const std::string_view own_port = is_plain ? ":80" : ":443";
  const bool has_port = HostOf(host).has_value();
  endpoint.is_local = IsLocal(has_port ? std::string(host) : fmt::format("{}{}", host, own_port));
  if (is_plain && !endpoint.is_local) {
    return refused(
        "http:// is allowed for an address of this machine only, because everybody on the way could read and "
        "change blobs");
  }
  if (has_port && host.ends_with(own_port)) host.remove_suffix(own_port.size());
  endpoint.host = host;
  return endpoint;
}

}  // namespace

absl::StatusOr<S3Location> LocateS3(std::string_view url, const S3Options& options) {
  S3Location location{.url = std::string(url)};
  std::string_view rest = url;
  if (!rest.starts_with(kScheme)) return absl::InvalidArgumentError("url: it does not begin with s3://");
  rest.remove_prefix(kScheme.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  location.bucket = rest.substr(0, slash);
  if (auto status = CheckBucket(location.bucket); !status.ok()) return status;
  std::string_view prefix = rest.substr(std::min(slash + 1, rest.size()));
  if (prefix.ends_with('/')) prefix.remove_suffix(1);
  if (!prefix.empty()) {
    if (auto status = CheckBlobName(prefix); !status.ok()) return status;
    location.prefix = fmt::format("{}/", prefix);
  }

  location.region =
      options.region.empty() ? FromEnvironment({"AWS_REGION", "AWS_DEFAULT_REGION"}) : options.region;
  if (location.region.empty()) location.region = "us-east-1";
  if (auto status = CheckRegion(location.region); !status.ok()) return status;

  std::string endpoint = options.endpoint.empty()
                             ? FromEnvironment({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"})
                             : options.endpoint;
  const bool is_aws = endpoint.empty();
  if (is_aws) endpoint = fmt::format("https://s3.{}.amazonaws.com", location.region);
  const auto parsed = ParseEndpoint(endpoint);
  if (!parsed.ok()) return parsed.status();
  const bool in_path = options.path_style.value_or(!is_aws || location.bucket.find('.') != std::string::npos);
  location.host = in_path ? parsed->host : fmt::format("{}.{}", location.bucket, parsed->host);
  location.server = parsed->scheme + location.host;
  location.path = in_path ? fmt::format("/{}/", location.bucket) : "/";
  location.is_local = parsed->is_local;
  return location;
}

}  // namespace kvstore::s3
