#include "server/resp/commands/glob.h"

#include <utility>

namespace kvstore::server::resp {
namespace {

/// Returns whether the set that begins at `at`, after its '[', has the byte, and steps past its ']'.
bool InSet(std::string_view pattern, size_t& at, char byte) {
  const auto code = [](char c) { return static_cast<unsigned char>(c); };
  const bool inverted = at < pattern.size() && pattern[at] == '^';
  if (inverted) ++at;
  bool found = false;
  // A set that is not closed ends with the pattern.
  for (; at < pattern.size() && pattern[at] != ']'; ++at) {
    if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
    char first = pattern[at];
    char last = first;
    if (at + 2 < pattern.size() && pattern[at + 1] == '-' && pattern[at + 2] != ']') {
      at += 2;
      last = pattern[at];
      if (code(first) > code(last)) std::swap(first, last);
    }
    found = found || (code(first) <= code(byte) && code(byte) <= code(last));
  }
  if (at < pattern.size()) ++at;
  return found != inverted;
}

/// Returns whether the element of the pattern at `at`, which is not a '*', matches the byte, and steps past
/// it.
bool MatchesOne(std::string_view pattern, size_t& at, char byte) {
  const char c = pattern[at++];
  if (c == '?') return true;
  if (c == '[') return InSet(pattern, at, byte);
  if (c == '\\' && at < pattern.size()) return pattern[at++] == byte;
  return c == byte;
}

}  // namespace

bool Matches(std::string_view pattern, std::string_view text) {
  size_t at = 0;    // in the pattern
  size_t done = 0;  // of the text
  // The last '*' and what it stands for so far. Only that one has to be tried again: whatever an earlier one
  // could stand for, the last one can make up for.
  size_t star = std::string_view::npos;
  size_t star_end = 0;
  while (done < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = ++at;
      star_end = done;
      continue;
    }
    if (at < pattern.size() && MatchesOne(pattern, at, text[done])) {
      ++done;
      continue;
    }
    if (star == std::string_view::npos) return false;
    at = star;
    done = ++star_end;
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

std::string LiteralPrefix(std::string_view pattern) {
  std::string prefix;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '*' || pattern[i] == '?' || pattern[i] == '[') break;
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    prefix += pattern[i];
  }
  return prefix;
}

}  // namespace kvstore::server::resp
