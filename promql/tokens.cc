#include "promql/tokens.h"

#include <fmt/format.h>

namespace kvstore::promql {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':'; }
bool IsName(char c) { return IsNameStart(c) || IsDigit(c); }
bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

absl::Status ErrorAt(size_t at, std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("query: at {}: {}", at + 1, problem));
}

/// Reads a string from its quote on, and moves `at` past it.
absl::StatusOr<std::string> ReadString(std::string_view query, size_t& at) {
  const size_t begin = at;
  const char quote = query[at++];
  std::string text;
  while (at < query.size() && query[at] != quote) {
    // Between backquotes there are no escapes.
    if (query[at] != '\\' || quote == '`') {
      text += query[at++];
      continue;
    }
    const char escaped = at + 1 < query.size() ? query[at + 1] : '\0';
    switch (escaped) {
      case 'n':
        text += '\n';
        break;
      case 't':
        text += '\t';
        break;
      case '\\':
      case '"':
      case '\'':
        // In a regular expression: the character itself. The string has "\\." for it, or `\.`.
        text += escaped;
        break;
      default:
        return ErrorAt(at, fmt::format("'\\{}' is no escape here; write \\\\ for a backslash", escaped));
    }
    at += 2;
  }
  if (at == query.size()) return ErrorAt(begin, "the string does not end");
  ++at;
  return text;
}

}  // namespace

absl::StatusOr<std::vector<Token>> Tokenize(std::string_view query) {
  std::vector<Token> tokens;
  size_t at = 0;
  const auto take = [&](Token::Kind kind, size_t end) {
    tokens.push_back({kind, std::string(query.substr(at, end - at)), at});
    at = end;
  };
  while (at < query.size()) {
    const char c = query[at];
    if (IsSpace(c)) {
      ++at;
    } else if (c == '#') {
      while (at < query.size() && query[at] != '\n') ++at;
    } else if (IsNameStart(c)) {
      size_t end = at;
      while (end < query.size() && IsName(query[end])) ++end;
      take(Token::Kind::kName, end);
    } else if (IsDigit(c) || (c == '.' && at + 1 < query.size() && IsDigit(query[at + 1]))) {
      size_t end = at;
      bool letters = false;
      while (end < query.size() &&
             (IsDigit(query[end]) || query[end] == '.' || (query[end] >= 'a' && query[end] <= 'z'))) {
        letters = letters || !(IsDigit(query[end]) || query[end] == '.');
        ++end;
      }
      take(letters ? Token::Kind::kDuration : Token::Kind::kNumber, end);
    } else if (c == '"' || c == '\'' || c == '`') {
      const size_t begin = at;
      auto text = ReadString(query, at);
      if (!text.ok()) return text.status();
      tokens.push_back({Token::Kind::kString, *std::move(text), begin});
    } else {
      const std::string_view two = query.substr(at, 2);
      const bool is_two =
          two == "!=" || two == "=~" || two == "!~" || two == "==" || two == ">=" || two == "<=";
      take(Token::Kind::kMark, at + (is_two ? 2 : 1));
    }
  }
  tokens.push_back({Token::Kind::kEnd, "", query.size()});
  return tokens;
}

}  // namespace kvstore::promql
