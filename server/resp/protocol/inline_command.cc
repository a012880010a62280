#include "server/resp/protocol/inline_command.h"

namespace kvstore::server::resp {
namespace {

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || c == '\0'; }

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Returns what \c stands for within double quotes.
char Escaped(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

/// Reads the words of a line, and writes them over it.
class Splitter {
 public:
  explicit Splitter(std::span<char> line) : line_(line) {}

  bool Split(std::vector<Piece>& words) {
    for (;;) {
      while (in_ < line_.size() && IsSpace(line_[in_])) ++in_;
      if (in_ == line_.size()) return true;
      const size_t begin = out_;
      if (!ReadWord()) return false;
      words.push_back({begin, out_ - begin});
    }
  }

 private:
  bool ReadWord() {
    while (in_ < line_.size() && !IsSpace(line_[in_])) {
      const char c = line_[in_++];
      if (c != '"' && c != '\'') {
        Write(c);
        continue;
      }
      // A quote ends the word, as it does in Redis.
      return c == '"' ? ReadDoubleQuoted() : ReadSingleQuoted();
    }
    return true;
  }

  bool ReadDoubleQuoted() {
    while (in_ < line_.size()) {
      const char c = line_[in_++];
      if (c == '"') return IsAtEndOfWord();
      if (c != '\\' || in_ == line_.size()) {
        Write(c);
        continue;
      }
      const char escaped = line_[in_++];
      if (escaped == 'x' && in_ + 1 < line_.size() && HexValue(line_[in_]) >= 0 &&
          HexValue(line_[in_ + 1]) >= 0) {
        Write(static_cast<char>(HexValue(line_[in_]) << 4 | HexValue(line_[in_ + 1])));
        in_ += 2;
      } else {
        Write(Escaped(escaped));
      }
    }
    return false;
  }

  bool ReadSingleQuoted() {
    while (in_ < line_.size()) {
      char c = line_[in_++];
      if (c == '\'') return IsAtEndOfWord();
      if (c == '\\' && in_ < line_.size() && line_[in_] == '\'') c = line_[in_++];
      Write(c);
    }
    return false;
  }

  bool IsAtEndOfWord() const { return in_ == line_.size() || IsSpace(line_[in_]); }
  void Write(char c) { line_[out_++] = c; }

  const std::span<char> line_;
  size_t in_ = 0;
  size_t out_ = 0;  // never beyond in_
};

}  // namespace

bool SplitInline(std::span<char> line, std::vector<Piece>& words) { return Splitter(line).Split(words); }

}  // namespace kvstore::server::resp
