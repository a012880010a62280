#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kvstore::server::resp {

/// The digits of the largest number, and the length of the smallest one with its sign.
inline constexpr size_t kMaxDigits = 20;

/// Returns the number that a text is; nothing if it is anything else, does not fit, or is longer than
/// kMaxDigits: leading zeros would let a number, and a key with it, have megabytes.
template <std::integral Number>
std::optional<Number> ParseNumber(std::string_view text) {
  if (text.size() > kMaxDigits) return std::nullopt;
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}
inline std::optional<uint64_t> ParseUnsigned(std::string_view text) { return ParseNumber<uint64_t>(text); }
/// As Redis reads the numbers of its commands and of counters: not with a zero in front, which a code may
/// have that is no number, nor "-0".
inline std::optional<int64_t> ParseSigned(std::string_view text) {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.starts_with('0') && text != "0") return std::nullopt;
  return ParseNumber<int64_t>(text);
}

}  // namespace kvstore::server::resp
