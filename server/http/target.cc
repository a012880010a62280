#include "server/http/target.h"

#include <fmt/format.h>

#include <optional>

#include "server/http/connection_limits.h"

namespace kvstore::server {
namespace {

std::optional<int> HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

/// Undoes the percent escapes of a text; nothing if one of them is none.
std::optional<std::string> Unescaped(std::string_view text, bool plus_is_space) {
  std::string plain;
  plain.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      plain += ' ';
    } else if (text[i] != '%') {
      plain += text[i];
    } else {
      const bool whole = i + 2 < text.size();
      const auto high = whole ? HexDigit(text[i + 1]) : std::nullopt;
      const auto low = whole ? HexDigit(text[i + 2]) : std::nullopt;
      if (!high || !low) return std::nullopt;
      plain += static_cast<char>(*high << 4 | *low);
      i += 2;
    }
  }
  return plain;
}

/// Removes what is in front of the path of a URL.
std::string_view WithoutHost(std::string_view text) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!text.starts_with(scheme)) continue;
    const size_t path = text.find_first_of("/?", scheme.size());
    return path == std::string_view::npos ? "/" : text.substr(path);
  }
  return text;
}

absl::Status BadEscape(std::string_view where) {
  return absl::InvalidArgumentError(std::string(where) +
                                    ": has a '%' that two hexadecimal digits do not follow; write it as %25");
}

}  // namespace

absl::StatusOr<Target> ParseTarget(std::string_view text) {
  text = WithoutHost(text);
  if (!text.starts_with('/')) return absl::InvalidArgumentError("target: must be a path: \"/v1/datasets\"");
  if (text.find('#') != std::string_view::npos)
    return absl::InvalidArgumentError("target: must not have a fragment; write a '#' as %23");
  Target target;
  const size_t question = text.find('?');
  std::string_view path = text.substr(1, question == std::string_view::npos ? question : question - 1);
  for (;;) {
    const size_t slash = path.find('/');
    auto segment = Unescaped(path.substr(0, slash), /*plus_is_space=*/false);
    if (!segment) return BadEscape("path");
    target.path.push_back(*std::move(segment));
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  if (question == std::string_view::npos) return target;
  auto query = ParseForm(text.substr(question + 1));
  if (!query.ok()) return query.status();
  target.query = *std::move(query);
  return target;
}

absl::StatusOr<Parameters> ParseForm(std::string_view text) {
  Parameters parameters;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find('&'));
    text.remove_prefix(one.size() == text.size() ? one.size() : one.size() + 1);
    if (one.empty()) continue;
    const size_t equals = one.find('=');
    auto name = Unescaped(one.substr(0, equals), /*plus_is_space=*/true);
    auto value =
        Unescaped(equals == std::string_view::npos ? "" : one.substr(equals + 1), /*plus_is_space=*/true);
    if (!name || !value) return BadEscape("query");
    if (parameters.size() == kMaxParameters)
      return absl::InvalidArgumentError(fmt::format("query: has more than {} parameters", kMaxParameters));
    parameters.emplace_back(*std::move(name), *std::move(value));
  }
  return parameters;
}

}  // namespace kvstore::server
