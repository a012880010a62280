#include "backends/cached/servers/redis_answers.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "backends/cached/servers/shown.h"

namespace kvstore::cached {
namespace {

std::optional<int64_t> ReadInteger(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

absl::Status NotOfRedisError(std::string_view line) {
  return absl::UnavailableError(fmt::format("has answered '{}', which is no answer of Redis", Shown(line)));
}

absl::Status TooLargeError(std::string_view what, int64_t size, size_t most) {
  return absl::UnavailableError(
      fmt::format("answers with {} {}, and at most {} are accepted", size, what, most));
}

}  // namespace

absl::StatusOr<std::optional<RedisAnswer>> RedisAnswers::Next(size_t most_parts) {
  using Kind = RedisAnswer::Kind;
  for (;;) {
    if (list_ && list_->parts.size() == static_cast<size_t>(list_->number)) {
      list_->number = 0;
      return std::exchange(list_, std::nullopt);
    }
    auto part = NextPart();
    if (!part.ok() || !*part) return part;
    const bool is_list = (*part)->kind == Kind::kList;
    if (list_) {
      if (is_list) return absl::UnavailableError("answers with a list in a list, which was not asked for");
      list_->parts.push_back(**std::move(part));
    } else if (!is_list) {
      return part;
    } else {
      const int64_t count = (*part)->number;
      if (static_cast<uint64_t>(count) > most_parts) return TooLargeError("parts", count, most_parts);
      list_ = **std::move(part);
    }
  }
}

absl::StatusOr<std::optional<RedisAnswer>> RedisAnswers::NextPart() {
  using Kind = RedisAnswer::Kind;
  const std::string_view rest = std::string_view(bytes_).substr(used_);
  const size_t end = rest.substr(0, kMaxLineBytes + 2).find("\r\n");
  if (end == std::string_view::npos) {
    if (rest.size() >= kMaxLineBytes + 2) return NotOfRedisError(rest);
    return std::nullopt;
  }
  const std::string_view line = rest.substr(0, end);
  if (line.empty()) return NotOfRedisError(line);
  const std::string_view said = line.substr(1);
  RedisAnswer answer;
  size_t size = end + 2;
  switch (line.front()) {
    case '+':
    case '-':
      answer.kind = line.front() == '+' ? Kind::kText : Kind::kError;
      answer.text = said;
      break;
    case ':': {
      const auto number = ReadInteger(said);
      if (!number) return NotOfRedisError(line);
      answer.kind = Kind::kNumber;
      answer.number = *number;
      break;
    }
    case '$': {
      const auto bytes = ReadInteger(said);
      if (!bytes || *bytes < -1) return NotOfRedisError(line);
      if (*bytes == -1) break;
      if (static_cast<uint64_t>(*bytes) > kMaxTextBytes) return TooLargeError("bytes", *bytes, kMaxTextBytes);
      const auto length = static_cast<size_t>(*bytes);
      if (rest.size() < size + length + 2) return std::nullopt;
      if (rest.substr(size + length, 2) != "\r\n") return NotOfRedisError(line);
      answer.kind = Kind::kText;
      answer.text = rest.substr(size, length);
      size += length + 2;
      break;
    }
    case '*': {
      const auto count = ReadInteger(said);
      if (!count || *count < -1) return NotOfRedisError(line);
      if (*count == -1) break;
      answer.kind = Kind::kList;
      answer.number = *count;
      break;
    }
    default:
      return NotOfRedisError(line);
  }
  Use(size);
  return answer;
}

void RedisAnswers::Use(size_t size) {
  used_ += size;
  // The bytes that were returned are dropped once they are most of the buffer.
  if (used_ <= bytes_.size() / 2) return;
  bytes_.erase(0, used_);
  used_ = 0;
}

}  // namespace kvstore::cached
