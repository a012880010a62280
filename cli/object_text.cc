#include "cli/object_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/trim.h"
#include "json/json.h"

namespace kvstore::cli {
namespace {

/// Returns the place after the string that begins at `at`.
size_t EndOfString(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(at + 1, text.size());
}

/// Returns whether a key, in its quotes, is "data".
bool IsData(std::string_view key) {
  if (key.find('\\') == std::string_view::npos) return key == R"("data")";
  const auto name = ParseJson(key);
  return name.ok() && *name == "data";
}

}  // namespace

void PutOnOneLine(std::string& document) {
  std::replace_if(
      document.begin(), document.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
}

std::string_view DocumentIn(std::string_view line) {
  std::string_view found;
  std::string_view key;  // of the member that is being passed; empty before it
  size_t begin = 0;      // of its value
  int depth = 0;
  for (size_t at = 0; at < line.size();) {
    const char c = line[at];
    if (c == '"') {
      const size_t end = EndOfString(line, at);
      if (depth == 1 && key.empty()) key = line.substr(at, end - at);
      at = end;
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == ':' && depth == 1) begin = at + 1;
    if ((c == ',' || c == '}') && depth == 1) {
      if (IsData(key)) found = Trimmed(line.substr(begin, at - begin));
      key = {};
    }
    if (c == '}' || c == ']') --depth;
    ++at;
  }
  return found;
}

bool SameDocument(std::string a, std::string b) {
  PutOnOneLine(a);
  PutOnOneLine(b);
  if (a == b) return true;
  const auto first = ParseJson(a);
  if (!first.ok()) return false;
  const auto second = ParseJson(b);
  return second.ok() && *first == *second;
}

}  // namespace kvstore::cli
