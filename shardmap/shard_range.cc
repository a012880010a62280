#include "shardmap/shard_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace kvstore {
namespace {

constexpr size_t kMaxHostBytes = 253;  // the longest DNS name

bool IsHostChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_';
}

/// "NAME" or "NAME:PORT".
std::optional<Host> ParseHost(std::string_view text) {
  Host host;
  const size_t colon = text.find(':');
  host.name = text.substr(0, colon);
  if (host.name.empty() || host.name.size() > kMaxHostBytes) return std::nullopt;
  if (!std::all_of(host.name.begin(), host.name.end(), IsHostChar)) return std::nullopt;
  if (colon == std::string_view::npos) return host;
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), host.port);
  if (error != std::errc() || end != port.data() + port.size() || host.port == 0) return std::nullopt;
  return host;
}

}  // namespace

std::string Host::ToString() const { return port == kDefaultPort ? name : fmt::format("{}:{}", name, port); }

absl::StatusOr<Host> Host::Parse(std::string_view text) {
  auto host = ParseHost(text);
  if (host) return *std::move(host);
  return absl::InvalidArgumentError(
      fmt::format("host: '{}' is not a host name with an optional :port (1..65535)", text));
}

}  // namespace kvstore
