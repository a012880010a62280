#include "client/token.h"

#include <fmt/format.h>

#include "base/address.h"

namespace kvstore::client {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

absl::Status CheckMetadata(std::string_view name, std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte < 0x7F) continue;
    return absl::InvalidArgumentError(
        fmt::format("{}: byte {} of {} is {:#04x}, which is not a printable ASCII character", name, i + 1,
                    text.size(), byte));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> TokenFor(const std::string& address, const ConnectOptions& options) {
  std::string_view token = options.token;
  if (token.starts_with(kByteOrderMark)) token.remove_prefix(kByteOrderMark.size());
  if (auto status = CheckMetadata("token", token); !status.ok()) return status;
  if (!token.empty() && !options.tls && !options.plain_token && !IsLocal(address)) {
    return absl::InvalidArgumentError(fmt::format(
        "token: the connection to {} is not encrypted, so anybody who sees its packets would have "
        "the token: use TLS, or say plain_token (kv: --plain-token)",
        address));
  }
  return std::string(token);
}

}  // namespace kvstore::client
