#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "backends/cached/servers/memcached_answers.h"

/// Any bytes from a cache server are answers, or an error; the same ones in whatever pieces they arrive.
namespace {

using kvstore::cached::MemcachedAnswers;

std::string Decode(std::string_view bytes, size_t piece) {
  MemcachedAnswers answers;
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    answers.Append(bytes.substr(at, piece));
    for (;;) {
      const auto answer = answers.Next();
      if (!answer.ok()) return text + "!";
      if (!*answer) break;
      text += (*answer)->code + ' ' + (*answer)->value + ' ' + std::to_string((*answer)->cas) + ' ' +
              std::to_string((*answer)->client) + ((*answer)->won ? 'W' : ' ');
    }
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // A line that is too long is an error as soon as that is seen, which is earlier in small pieces; the limit
  // is beyond what this tries.
  if (size > MemcachedAnswers::kMaxLineBytes) return 0;
  const std::string whole = Decode(bytes, size + 1);
  if (Decode(bytes, 1) != whole || Decode(bytes, 7) != whole) std::abort();
  return 0;
}
