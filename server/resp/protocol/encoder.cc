#include "server/resp/protocol/encoder.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace kvstore::server::resp {
namespace {

constexpr std::string_view kEnd = "\r\n";

/// A number as text.
class Digits {
 public:
  template <typename Number>
  explicit Digits(Number number) {
    const char* const end = std::to_chars(text_.data(), text_.data() + text_.size(), number).ptr;
    size_ = static_cast<size_t>(end - text_.data());
  }
  std::string_view text() const { return {text_.data(), size_}; }

 private:
  std::array<char, 24> text_{};
  size_t size_ = 0;
};

}  // namespace

void Encoder::Line(char type, int64_t number) {
  // As one piece: answers have a line for each of their parts.
  std::array<char, 24> line;
  line[0] = type;
  char* const digits_end = std::to_chars(line.data() + 1, line.data() + line.size(), number).ptr;
  char* const end = std::copy(kEnd.begin(), kEnd.end(), digits_end);
  Add(std::string_view(line.data(), static_cast<size_t>(end - line.data())));
}

void Encoder::Simple(std::string_view text) {
  Add('+');
  Add(text);
  Add(kEnd);
}

void Encoder::Error(std::string_view text) {
  Add('-');
  for (const char c : text) Add(static_cast<unsigned char>(c) < ' ' || c == '\x7F' ? ' ' : c);
  Add(kEnd);
}

void Encoder::Integer(int64_t number) { Line(':', number); }

void Encoder::Bulk(std::string_view bytes) {
  Line('$', static_cast<int64_t>(bytes.size()));
  Add(bytes);
  Add(kEnd);
}

void Encoder::Null() { Add(std::string_view(IsResp3() ? "_\r\n" : "$-1\r\n")); }

void Encoder::NullArray() { Add(IsResp3() ? "_\r\n" : "*-1\r\n"); }

void Encoder::Array(size_t elements) { Line('*', static_cast<int64_t>(elements)); }

void Encoder::Map(size_t pairs) {
  if (IsResp3()) return Line('%', static_cast<int64_t>(pairs));
  Array(2 * pairs);
}

void Encoder::Set(size_t elements) {
  if (IsResp3()) return Line('~', static_cast<int64_t>(elements));
  Array(elements);
}

void Encoder::Score(uint64_t score) {
  const Digits digits(score);
  if (!IsResp3()) return Bulk(digits.text());
  Add(',');
  Add(digits.text());
  Add(kEnd);
}

void Encoder::Verbatim(std::string_view text) {
  if (!IsResp3()) return Bulk(text);
  Line('=', static_cast<int64_t>(text.size() + 4));
  Add("txt:");
  Add(text);
  Add(kEnd);
}

}  // namespace kvstore::server::resp
