#include "server/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <vector>

namespace kvstore::server {
namespace {

constexpr std::string_view kUnix = "unix:";

/// The host of "host:port" or "[ipv6]:port"; none if it is no such thing.
std::optional<std::string> HostOf(std::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = address.substr(0, colon);
  const std::string_view port = address.substr(colon + 1);
  unsigned number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size() || number > 65535) return std::nullopt;
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || (!bracketed && host.find(':') != std::string_view::npos)) return std::nullopt;
  return std::string(host);
}

}  // namespace

bool IsLocal(std::string_view address) {
  if (address.starts_with(kUnix)) return true;
  const auto host = HostOf(address);
  if (!host) return false;
  if (*host == "localhost") return true;
  in_addr v4{};
  if (::inet_pton(AF_INET, host->c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, host->c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

absl::Status CheckAddresses(const ServerOptions& options) {
  std::vector<std::string> mistakes;
  const auto check = [&](std::string_view field, std::string_view address) {
    if (address.starts_with(kUnix) ? address.size() > kUnix.size() : HostOf(address).has_value()) return true;
    mistakes.push_back(
        fmt::format("{}: '{}' is no address; it is \"host:port\" or \"unix:/path\"", field, address));
    return false;
  };
  const bool authenticated = !options.tokens.empty() || !options.tls.client_ca.empty();
  for (size_t i = 0; i < options.listen.size(); ++i) {
    const std::string& address = options.listen[i];
    const std::string field = fmt::format("server.listen[{}]", i);
    if (!check(field, address) || IsLocal(address) || options.insecure) continue;
    if (options.tls.cert.empty()) {
      mistakes.push_back(fmt::format(
          "{}: '{}' is reached from other machines: give server.tls, or say --insecure", field, address));
    }
    if (!authenticated) {
      mistakes.push_back(
          fmt::format("{}: '{}' is reached from other machines: give server.tokens or server.tls.client_ca, "
                      "or say --insecure",
                      field, address));
    }
  }
  if (!options.http.empty() && options.http.starts_with(kUnix)) {
    mistakes.push_back("server.http: must be \"host:port\"");
  } else if (!options.http.empty() && check("server.http", options.http) && !IsLocal(options.http) &&
             !options.insecure && !options.http_open) {
    mistakes.push_back(fmt::format(
        "server.http: '{}' is reached from other machines, without encryption: say \"http_open\": true",
        options.http));
  }
  if (mistakes.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{}", fmt::join(mistakes, "\n")));
}

}  // namespace kvstore::server
