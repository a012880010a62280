#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "backends/cached/servers/redis_answers.h"

/// Any bytes from a cache server are answers, or an error; the same ones in whatever pieces they arrive.
namespace {

using kvstore::cached::RedisAnswer;
using kvstore::cached::RedisAnswers;

constexpr size_t kMostParts = 8;

std::string AsText(const RedisAnswer& answer) {
  if (answer.parts.size() > kMostParts) std::abort();
  std::string text = std::to_string(static_cast<int>(answer.kind)) + answer.text + ' ';
  text += std::to_string(answer.number);
  for (const RedisAnswer& part : answer.parts) text += '(' + AsText(part) + ')';
  return text;
}

std::string Decode(std::string_view bytes, size_t piece) {
  RedisAnswers answers;
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    answers.Append(bytes.substr(at, piece));
    for (;;) {
      const auto answer = answers.Next(kMostParts);
      if (!answer.ok()) return text + "!";
      if (!*answer) break;
      text += AsText(**answer);
    }
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // A line that is too long is an error as soon as that is seen, which is earlier in small pieces; the limit
  // is beyond what this tries.
  if (size > RedisAnswers::kMaxLineBytes) return 0;
  const std::string whole = Decode(bytes, size + 1);
  if (Decode(bytes, 1) != whole || Decode(bytes, 7) != whole) std::abort();
  return 0;
}
