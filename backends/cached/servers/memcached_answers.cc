#include "backends/cached/servers/memcached_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "backends/cached/servers/shown.h"

namespace kvstore::cached {
namespace {

/// Reads a decimal number that fills the text.
std::optional<uint64_t> ReadNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

/// Cuts the first word off a line.
std::string_view NextWord(std::string_view& line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

bool IsKnown(std::string_view code) {
  static constexpr std::array<std::string_view, 7> kCodes = {"HD", "VA", "EN", "NS", "EX", "NF", "MN"};
  return std::find(kCodes.begin(), kCodes.end(), code) != kCodes.end();
}

absl::Status NoAnswerError(std::string_view line) {
  return absl::UnavailableError(
      fmt::format("has answered '{}', which is no answer of memcached 1.6", Shown(line)));
}

}  // namespace

absl::StatusOr<std::optional<MemcachedAnswer>> MemcachedAnswers::Next() {
  const std::string_view rest = std::string_view(bytes_).substr(used_);
  const size_t end = rest.find("\r\n");
  if (end == std::string_view::npos) {
    if (rest.size() > kMaxLineBytes) return NoAnswerError(rest);
    return std::nullopt;
  }
  if (end > kMaxLineBytes) return NoAnswerError(rest);
  std::string_view line = rest.substr(0, end);
  const std::string_view whole = line;
  MemcachedAnswer answer;
  answer.code = NextWord(line);
  if (!IsKnown(answer.code)) {
    const bool error =
        whole.starts_with("SERVER_ERROR") || whole.starts_with("CLIENT_ERROR") || whole == "ERROR";
    return error ? absl::UnavailableError(fmt::format("refuses: {}", Shown(whole))) : NoAnswerError(whole);
  }
  size_t size = end + 2;
  if (answer.code == "VA") {
    const auto bytes = ReadNumber(NextWord(line));
    if (!bytes || *bytes > kMaxValueBytes) return NoAnswerError(whole);
    if (rest.size() < size + *bytes + 2) return std::nullopt;
    answer.value = rest.substr(size, *bytes);
    if (rest.substr(size + *bytes, 2) != "\r\n") return NoAnswerError(whole);
    size += *bytes + 2;
  }
  while (!line.empty()) {
    const std::string_view flag = NextWord(line);
    if (flag.empty()) continue;
    if (flag.front() == 'W') answer.won = true;
    if (flag.front() != 'c' && flag.front() != 'f') continue;
    const auto number = ReadNumber(flag.substr(1));
    if (!number) return NoAnswerError(whole);
    (flag.front() == 'c' ? answer.cas : answer.client) = *number;
  }
  used_ += size;
  // The bytes that were returned are dropped once they are most of the buffer.
  if (used_ > bytes_.size() / 2) {
    bytes_.erase(0, used_);
    used_ = 0;
  }
  return answer;
}

}  // namespace kvstore::cached
