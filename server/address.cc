#include "server/address.h"

#include <fmt/format.h>

#include <vector>

#include "base/address.h"

namespace kvstore::server {
namespace {

/// Returns whether a text would be "host:port" if its port were not beyond 65535.
bool HasLargePort(std::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == address.size()) return false;
  const bool is_number = address.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
  return is_number && !HostOf(address) && HostOf(fmt::format("{}:0", address.substr(0, colon)));
}

/// Returns whether a text is an origin as browsers write it, or stands for all of them.
bool IsOrigin(std::string_view text) {
  if (text == "*") return true;
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (!text.starts_with(scheme)) continue;
    const std::string_view host = text.substr(scheme.size());
    return !host.empty() && host.find_first_of("/?# \t\r\n") == std::string_view::npos;
  }
  return false;
}

}  // namespace

absl::Status CheckAddresses(const ServerOptions& options) {
  std::vector<std::string> mistakes;
  const auto check = [&](std::string_view field, std::string_view address) {
    if (address.starts_with(kUnixPrefix) ? address.size() > kUnixPrefix.size() : HostOf(address).has_value())
      return true;
    mistakes.push_back(HasLargePort(address)
                           ? fmt::format("{}: the port of '{}' is greater than 65535", field, address)
                           : fmt::format("{}: '{}' is not an address; give \"host:port\" or \"unix:/path\"",
                                         field, address));
    return false;
  };
  const bool authenticated = !options.tokens.empty() || !options.tls.client_ca.empty();
  const auto check_served = [&](const std::string& field, const std::string& address) {
    if (!check(field, address) || IsLocal(address) || options.insecure) return;
    if (options.tls.cert.empty()) {
      mistakes.push_back(fmt::format(
          "{}: '{}' can be reached from other machines: give server.tls, or say --insecure", field, address));
    }
    if (!authenticated) {
      mistakes.push_back(fmt::format(
          "{}: '{}' can be reached from other machines: give server.tokens or server.tls.client_ca, "
          "or say --insecure",
          field, address));
    }
  };
  for (size_t i = 0; i < options.listen.size(); ++i)
    check_served(fmt::format("server.listen[{}]", i), options.listen[i]);
  if (options.http_api.starts_with(kUnixPrefix)) {
    mistakes.push_back("server.http_api: must be \"host:port\"");
  } else if (!options.http_api.empty()) {
    check_served("server.http_api", options.http_api);
  }
  for (size_t i = 0; i < options.http_origins.size(); ++i) {
    if (IsOrigin(options.http_origins[i])) continue;
    mistakes.push_back(
        fmt::format("server.http_origins[{}]: '{}' is not an origin; give \"https://host\", with the port if "
                    "it has one, or \"*\"",
                    i, options.http_origins[i]));
  }
  if (!options.resp.empty()) check_served("server.resp", options.resp);
  if (!options.http.empty() && options.http.starts_with(kUnixPrefix)) {
    mistakes.push_back("server.http: must be \"host:port\"");
  } else if (!options.http.empty() && check("server.http", options.http) && !IsLocal(options.http) &&
             !options.insecure && !options.http_open) {
    mistakes.push_back(fmt::format(
        "server.http: '{}' can be reached from other machines, and is not encrypted: if that is wanted, say "
        "\"http_open\": true",
        options.http));
  }
  if (mistakes.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{}", fmt::join(mistakes, "\n")));
}

absl::Status CheckNotTaken(const std::vector<std::string>& listen) {
  for (const std::string& address : listen) {
    if (IsListening(address)) {
      return absl::UnavailableError(fmt::format("cannot listen on {}: another server has it", address));
    }
  }
  return absl::OkStatus();
}

}  // namespace kvstore::server
